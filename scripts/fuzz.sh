#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# libFuzzer on every parser of bytes from outside: tests/fuzz/*_fuzz.c, each linked with base/ and
# the sources that it names (tests/fuzz/links.py). They begin with the inputs in
# tests/fuzz/seeds/NAME, where there are any (*.hex: as hexadecimal digits). `make check` runs those,
# and some made from them, without libFuzzer (tests/fuzz/replay.c).
# Usage: scripts/fuzz.sh [SECONDS [NAME]]
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-30}
only=${2:-}
out=build-fuzz
mkdir -p $out
base=$(find src/base -name '*.c' ! -name '*_test.c')
for f in tests/fuzz/*"$only"*_fuzz.c; do
	name=$(basename "$f" .c)
	more=$(tests/fuzz/links.py "$(basename "$f")")
	clang -std=gnu17 -D_GNU_SOURCE -DHALE_VERSION='"0"' -g -O1 -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=all -include src/base/names.h -Isrc -Iinclude \
		-o "$out/$name" "$f" $base $more -lxxhash -llz4 -lzstd -lsodium -lm
	mkdir -p "$out/$name.corpus"
	seeds=tests/fuzz/seeds/$name
	[ -d "$seeds" ] || seeds=
	for hex in "$seeds"/*.hex; do
		[ ! -e "$hex" ] || xxd -r -p "$hex" "$out/$name.corpus/$(basename "$hex" .hex)"
	done
	echo "$name: $seconds s"
	"$out/$name" -max_total_time="$seconds" -max_len=4096 -timeout=10 -verbosity=0 \
		-print_final_stats=1 -artifact_prefix="$out/" "$out/$name.corpus" $seeds 2>&1 |
		grep -E 'number_of_executed|not so|ERROR|SUMMARY|Test unit' || true
	! ls $out/crash-* $out/timeout-* >/dev/null 2>&1 || { echo "$name: see $out"; exit 1; }
done
