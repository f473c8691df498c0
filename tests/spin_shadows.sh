#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Shadows (docs/shadows.md): promotion, muteness, logs, forced jumps, processes that come back, with
# processes lost at any step, all states; and that the model notices twelve ways of doing it wrong. One
# program for all runs, which reads its settings from the environment. HALE_LONG=1: larger ones.
set -eu
model=docs/models/shadows.pml
. scripts/spin_once.sh

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
