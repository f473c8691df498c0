#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Shared cells of collectives through checkpoints (docs/collectives.md), all states; and that the
# model finds four ways of doing it wrong. HALE_LONG=1: larger ones, minutes.
set -eu
model=docs/models/rtc_ctc.pml
. scripts/spin_lib.sh

right 'N 2' 'OPS 3' 'ROUNDS 1'
right 'N 2' 'OPS 2' 'ROUNDS 2'
for b in 1 2 3; do
	wrong 'N 2' 'OPS 3' 'ROUNDS 1' "BREAK $b"
done
# a root that waits for several readers, again and again
right 'N 3' 'OPS 3' 'D 1' 'ROUNDS 1' 'ONLY 0'
wrong 'N 3' 'OPS 3' 'D 1' 'ROUNDS 1' 'ONLY 0' 'BREAK 4'
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'N 3' 'OPS 2' 'ROUNDS 1'
	right 'N 2' 'OPS 4' 'ROUNDS 1'
fi
