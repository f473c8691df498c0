#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Shared cells of collectives through checkpoints (docs/collectives.md), all states; and that the
# model finds three ways of doing it wrong. HALE_LONG=1: larger ones, minutes.
set -eu
model=docs/models/rtc_ctc.pml
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

check() {
	for d in "$@"; do echo "#define $d"; done | cat - "$model" >"$dir/model.pml"
	sh scripts/spin.sh "$dir/model.pml" >"$dir/log" 2>&1
}

right() {
	status=0
	check "$@" || status=$?
	[ $status -ne 77 ] || exit 77
	[ $status -eq 0 ] || { echo "wrong with $*:"; cat "$dir/log"; exit 1; }
	echo "right: $*: $(grep 'states, stored' "$dir/log")"
}

wrong() {
	if check "$@"; then
		echo "the model doesn't notice what is broken by $*"
		exit 1
	fi
	echo "noticed: $*"
}

right 'N 2' 'OPS 3' 'ROUNDS 1'
right 'N 2' 'OPS 2' 'ROUNDS 2'
for b in 1 2 3; do
	wrong 'N 2' 'OPS 3' 'ROUNDS 1' "BREAK $b"
done
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'N 3' 'OPS 2' 'ROUNDS 1'
	right 'N 2' 'OPS 4' 'ROUNDS 1'
fi
