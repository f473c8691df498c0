#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# usage: uninstall.sh BUILD: removes what `make install` has put in place from that build folder, and the
# folders of Hale's that are empty then.
set -e
build=$1
log=$build/meson-logs/install-log.txt
[ -e "$log" ] || { echo "nothing was installed from $build"; exit 1; }
count=0
folders=$(mktemp)
trap 'rm -f "$folders"' EXIT
for list in "$log" "$build/debug-files.txt"; do
	[ -e "$list" ] || continue
	while IFS= read -r file; do
		case $file in '#'* | '') continue ;; esac
		dirname "$file" >>"$folders"
		[ -e "$file" ] || [ -L "$file" ] || continue
		[ ! -d "$file" ] || continue
		rm -f "$file"
		count=$((count + 1))
	done <"$list"
done
# the deepest first; only those that are Hale's own
sort -ru "$folders" | while IFS= read -r folder; do
	while case $folder in */hale | */hale/* | */lib/debug | */lib/debug/*) true ;; *) false ;; esac; do
		rmdir "$folder" 2>/dev/null || break
		folder=$(dirname "$folder")
	done
done
rm -f "$log" "$build/debug-files.txt"
echo "$count files removed"
