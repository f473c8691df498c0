#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copies of images on partners, a node lost with its disk at any moment (docs/levels.md), all states;
# and that the model notices five ways of doing it wrong. HALE_LONG=1: larger ones.
set -eu
model=docs/models/levels.pml
. scripts/spin_lib.sh

right 'CKPTS 2'
for b in 1 2 3 4 5; do
	wrong 'CKPTS 2' "BREAK $b"
done
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'CKPTS 3'
fi
