#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Shadows (docs/shadows.md): promotion, muteness, logs, forced jumps, processes that come back, with
# processes lost at any step, all states; and that the model notices twelve ways of doing it wrong. One
# program for all runs, which reads its settings from the environment. HALE_LONG=1: larger ones.
set -eu
command -v spin >/dev/null || { echo "spin isn't installed (Debian package spin)"; exit 77; }
model=$(realpath docs/models/shadows.pml)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
spin -a "$model" >spin.log
cc -w -O1 -DSAFETY -DCOLLAPSE -DMEMLIM=4096 -o pan pan.c

visit() {
	env "$@" ./pan -m100000 -w18 >log 2>&1 || true
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

right LOSSES=1 COPIES=1
right LOSSES=2 BOUND=1
right LOSSES=1 SETS=2
for b in 1 2 4 5 7 9 10 12; do
	wrong COPIES=1 BREAK=$b
done
wrong SETS=2 BREAK=3
wrong BOUND=1 BREAK=6
wrong LOSSES=2 COPIES=1 BREAK=8
wrong LOSSES=2 COPIES=1 BREAK=11
if [ "${HALE_LONG:-0}" != 0 ]; then
	right LOSSES=2 COPIES=1
	right LOSSES=2 COPIES=1 SETS=2
	right LOSSES=2 COPIES=2 BOUND=1
fi
