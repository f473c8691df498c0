#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A node's lease, under lost and late messages, stopped agents, pauses (docs/nodes.md), all states;
# and that the model notices five ways of doing it wrong. HALE_LONG=1: larger ones.
set -eu
model=docs/models/lease.pml
. scripts/spin_lib.sh

right 'T 2' 'MARGIN 1'
for b in 1 2 3 4 5; do
	wrong 'T 2' 'MARGIN 1' "BREAK $b"
done
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'T 3' 'MARGIN 1'
fi
