#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copies of images on partners, a node lost with its disk at any moment, the head killed at any moment and
# followed by another one (docs/levels.md), all states; and that the model notices ten ways of doing it
# wrong. HALE_LONG=1: larger ones.
set -eu
model=docs/models/levels.pml
. scripts/spin_lib.sh

right 'CKPTS 2'
right 'CKPTS 2' 'HEADS 2'
for b in 1 2 3 4 5; do
	wrong 'CKPTS 2' "BREAK $b"
done
for b in 6 7 8 9 10; do
	wrong 'CKPTS 2' 'HEADS 2' "BREAK $b"
done
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'CKPTS 3'
	right 'CKPTS 2' 'HEADS 3'
	right 'CKPTS 3' 'HEADS 2'
fi
