#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The jump of one pair alone (docs/shadows.md), with each process lost at any step, all states; and that
# the model notices ten ways of doing it wrong. One program for all runs, which reads its settings from
# the environment. HALE_LONG=1: larger ones.
set -eu
model=docs/models/jump.pml
. scripts/spin_once.sh

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
