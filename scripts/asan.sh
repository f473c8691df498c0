#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Unit tests under AddressSanitizer and UndefinedBehaviorSanitizer. What takes over whole processes
# (captures them, rebuilds them), or maps the node's segment at its address, has no place beside
# ASan's own memory: those tests are listed in without_asan and run under UBSan alone.
set -eu
cd "$(dirname "$0")/.."
meson=${MESON:-/usr/bin/meson}
without_asan='image_ live_ match_ ckpt_ rank_ sink_ capture_ restore_'

run() { # FOLDER SANITIZERS TESTS…
	dir=$1 sanitizers=$2
	shift 2
	[ $# -gt 0 ] || return 0
	ninja -C "$dir" --quiet $(programs "$dir" "$@")
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=detect_stack_use_after_return=0 \
		$meson test -C "$dir" --no-rebuild --print-errorlogs "$@"
	echo "$# test programs ran under $sanitizers"
}

# Sanitized code draws warnings of its own from gcc 12, wrong ones: not errors here.
setup() { # FOLDER SANITIZERS
	[ -e "$1/build.ninja" ] || $meson setup "$1" -Dtests=enabled -Db_sanitize="$2" \
		-Db_lundef=false -Dbuildtype=debugoptimized -Dwerror=false >/dev/null
}

# Where Ninja has the programs of these tests.
programs() { # FOLDER TESTS…
	$meson introspect --tests "$1" | /usr/bin/python3 -c '
import json, os, sys
for t in json.load(sys.stdin):
    if t["name"] in sys.argv[2:]:
        print(os.path.relpath(t["cmd"][0], sys.argv[1]))' "$(realpath "$1")" "$@"
}

list() {
	$meson introspect --tests "$1" | /usr/bin/python3 -c '
import json, sys
for t in json.load(sys.stdin):
    if "unit" in " ".join(t["suite"]):
        print(t["name"])'
}

with='' without=''
setup build-asan address,undefined
for t in $(list build-asan); do
	alone=''
	for p in $without_asan; do
		case $t in $p*) alone=yes ;; esac
	done
	if [ "$alone" ]; then without="$without $t"; else with="$with $t"; fi
done
run build-asan 'ASan and UBSan' $with
if [ "$without" ]; then
	setup build-ubsan undefined
	run build-ubsan 'UBSan' $without
fi
scripts/asan_ocl.sh build-asan
