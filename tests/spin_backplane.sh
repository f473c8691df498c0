#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Healing of the tree of event brokers (docs/backplane.md), all states; and that the model notices
# five ways of doing it wrong. HALE_LONG=1: larger ones, minutes.
set -eu
model=docs/models/backplane.pml
. scripts/spin_lib.sh

right 'N 3' 'M 2' 'KILLS 1' 'CUTS 1' 'PUB 2'
right 'N 3' 'M 1' 'KILLS 1' 'CUTS 1' 'PUB 0'
right 'N 4' 'M 1' 'KILLS 1' 'CUTS 1' 'PUB 3'
for b in 1 2 3 4 5; do
	wrong 'N 3' 'M 2' 'KILLS 1' 'CUTS 1' 'PUB 2' "BREAK $b"
done
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'N 4' 'M 1' 'KILLS 2' 'CUTS 1' 'PUB 2'
	right 'N 4' 'M 2' 'KILLS 1' 'CUTS 1' 'PUB 3'
fi
