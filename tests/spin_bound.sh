#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The bound of what replicas keep (docs/redundancy.md), with replicas that send in orders of their own:
# nobody waits for ever, whoever dies. Five mistakes are noticed. HALE_LONG=1: more who may die, and
# two messages to each rank.
set -eu
model=docs/models/bound.pml
. scripts/spin_lib.sh

right 'M 1' 'DIE_A 0'
for b in 1 2; do
	wrong 'M 1' 'DIE_A 0' "BREAK $b"
done
wrong 'M 2' 'DIE_A 0' 'BREAK 3'
wrong 'M 1' 'DIE_A 1' 'DIE_X 2' 'DIE_Y 2' 'BREAK 4'
wrong 'M 2' 'DIE_A 0' 'DIE_X 2' 'DIE_Y 2' 'BREAK 5'
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'M 1' 'DIE_A 1' 'DIE_X 2' 'DIE_Y 2'
	right 'M 1' 'DIE_A 1' 'DIE_Y 2'
	right 'M 2' 'DIE_A 0' 'DIE_X 2' 'DIE_Y 2'
	right 'M 2' 'BOUND 2' 'DIE_A 0' 'DIE_X 2' 'DIE_Y 2'
fi
