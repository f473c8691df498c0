#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Suspend stamps of the shm channel through checkpoints, given-up ones and a restart
# (docs/channels.md), all states; and that the model notices four ways of doing it wrong.
# HALE_LONG=1: larger ones, minutes.
set -eu
model=docs/models/suspend.pml
. scripts/spin_lib.sh

right 'N 2' 'M 2' 'CAP 2' 'ROUNDS 2'
right 'N 2' 'M 3' 'CAP 1' 'ROUNDS 1'
for b in 1 2 3 4; do
	wrong 'N 2' 'M 2' 'ROUNDS 2' "BREAK $b"
done
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'N 3' 'M 1' 'CAP 1' 'ROUNDS 1'
	right 'N 2' 'M 3' 'CAP 2' 'ROUNDS 2'
fi
