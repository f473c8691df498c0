#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# New heads ask an agent that is killed before each of its steps, and replaced (docs/attach.md), all
# states; and that the model notices ways of doing it wrong.
set -eu
model=docs/models/knock.pml
. scripts/spin_lib.sh

right 'HEADS 3' 'DEATHS 2' 'CUTS 1'
for b in 1 2 3 4 5 6; do
	wrong 'HEADS 3' 'DEATHS 1' 'CUTS 1' "BREAK $b"
done
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'HEADS 4' 'DEATHS 2' 'CUTS 1'
fi
