#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# An agent is replaced (docs/nodes.md): killed before each of its steps, all states; and that the
# model notices seven ways of doing it wrong. HALE_LONG=1: more deaths, more of everything.
set -eu
model=docs/models/adopt.pml
. scripts/spin_lib.sh

right 'BYTES 2' 'PACKETS 1' 'COMMANDS 1' 'DEATHS 2'
right 'BYTES 3' 'PACKETS 1' 'COMMANDS 1' 'DEATHS 1'
for b in 1 2 3 4 5 6 7; do
	wrong 'BYTES 2' 'PACKETS 1' 'COMMANDS 1' 'DEATHS 1' "BREAK $b"
done
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'BYTES 3' 'PACKETS 2' 'COMMANDS 2' 'DEATHS 2'
fi
