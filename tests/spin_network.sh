#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The net channel through checkpoints, given-up ones, lost connections and a restart
# (docs/network-channel.md), all states; and that the model notices five ways of doing it wrong. The
# same for two ranks that connect to each other. HALE_LONG=1: larger ones.
set -eu
model=docs/models/net_suspend.pml
. scripts/spin_lib.sh

right 'M 2' 'WINDOW 2' 'LOSSES 1' 'ROUNDS 2'
right 'M 3' 'WINDOW 2' 'LOSSES 1' 'ROUNDS 1'
for b in 1 2 3 4 5; do
	wrong 'M 3' 'WINDOW 2' 'ROUNDS 2' "BREAK $b"
done
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'M 4' 'WINDOW 3' 'LOSSES 2' 'ROUNDS 3'
fi

model=docs/models/net_connect.pml
for losses in 0 1 2; do
	right "LOSSES $losses"
done
for b in 1 2 3; do
	wrong 'LOSSES 1' "BREAK $b"
done
