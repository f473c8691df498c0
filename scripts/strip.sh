#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Of what Meson has just installed: symbols for debuggers go to PREFIX/lib/debug, by build id, where gdb finds
# them (of another prefix than /usr after `set debug-file-directory PREFIX/lib/debug`).
set -e
[ -z "$HALE_KEEP_SYMBOLS" ] || exit 0 # who makes a package parts them by himself
prefix=$MESON_INSTALL_DESTDIR_PREFIX
list=$MESON_BUILD_ROOT/debug-files.txt
: >"$list"
command -v objcopy >/dev/null && command -v readelf >/dev/null || exit 0
for file in "$prefix"/bin/hale "$prefix"/bin/halecc "$prefix"/lib/libftb.so.* "$prefix"/lib/hale/*; do
	[ -f "$file" ] && [ ! -L "$file" ] || continue
	id=$(readelf -n "$file" 2>/dev/null | sed -n 's/.*Build ID: *//p')
	[ -n "$id" ] || continue
	readelf -S "$file" | grep -q ' \.debug_info ' || continue
	rest=${id#??}
	folder=$prefix/lib/debug/.build-id/${id%"$rest"}
	mkdir -p "$folder"
	objcopy --only-keep-debug "$file" "$folder/$rest.debug"
	chmod 644 "$folder/$rest.debug"
	strip --strip-unneeded "$file"
	echo "$folder/$rest.debug" >>"$list"
done
