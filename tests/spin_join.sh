#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Collectives whose members restarts part and bring together (docs/collectives.md), all states; and
# that the model notices seven ways of doing it wrong.
set -eu
model=docs/models/join.pml
. scripts/spin_lib.sh

right 'OPS 2' 'RESTARTS 1'
for b in 1 2 3 4 5; do
	wrong 'OPS 2' 'RESTARTS 1' "BREAK $b"
done
right 'OPS 1' 'RESTARTS 2'
wrong 'OPS 1' 'RESTARTS 2' 'BREAK 6'
wrong 'OPS 2' 'RESTARTS 2' 'BREAK 7'
