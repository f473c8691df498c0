#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The jump of one pair alone (docs/shadows.md), with each process lost at any step, all states; and that
# the model notices ten ways of doing it wrong. One program for all runs, which reads its settings from
# the environment. HALE_LONG=1: larger ones.
set -eu
command -v spin >/dev/null || { echo "spin isn't installed (Debian package spin)"; exit 77; }
model=$(realpath docs/models/jump.pml)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
spin -a "$model" >spin.log
cc -w -O2 -DSAFETY -DCOLLAPSE -DMEMLIM=4096 -o pan pan.c

visit() {
	env "$@" ./pan -m100000 -w22 >log 2>&1 || true
	! grep -qE 'max search depth too small|out of memory|pan: reached' log || { cat log; exit 1; }
	grep -q 'errors: ' log || { cat log; exit 1; }
}

right() {
	visit "$@"
	grep -q 'errors: 0$' log && ! grep -q 'Search not completed' log || { echo "wrong with $*:"; cat spin.log log; exit 1; }
	echo "right: $*: $(grep 'states, stored' log)"
}

wrong() {
	visit "$@"
	grep -Eq 'assertion violated|invalid end state' log || { echo "the model doesn't notice what is broken by $*"; cat log; exit 1; }
	echo "noticed: $*"
}

right IN=1 OUT=0
right IN=0 OUT=1
for b in 1 2 7 8 9 10; do
	wrong IN=1 OUT=0 BREAK=$b
done
for b in 3 4 5 6; do
	wrong IN=0 OUT=1 BREAK=$b
done
if [ "${HALE_LONG:-0}" != 0 ]; then
	right IN=2 OUT=0
	right IN=0 OUT=2
	right IN=1 OUT=1
fi
