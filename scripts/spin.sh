#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks a Promela model exhaustively. Usage: scripts/spin.sh docs/models/NAME.pml
# Passes only if spin visited every state (no depth or memory limit met) and found no error.
set -eu
model=$(realpath "$1")
command -v spin >/dev/null || { echo "spin isn't installed (Debian package spin)"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
spin -a "$model" >spin.log
# -O1: most models are checked faster than -O2 compiles them
cc -w -O1 -DSAFETY -DCOLLAPSE -DMEMLIM=4096 -o pan pan.c
./pan -m1000000 >pan.log 2>&1 || true
grep -E 'errors: [0-9]+|states, stored|elapsed' pan.log || true
if ! grep -q 'errors: 0$' pan.log || grep -qE 'max search depth too small|out of memory|Search not completed' pan.log; then
	cat spin.log pan.log
	exit 1
fi
