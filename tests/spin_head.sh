#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# One head after another, killed and stopped anywhere, the cable to one node cut (docs/attach.md), all
# states; and that the model notices ways of doing it wrong.
set -eu
model=docs/models/head.pml
. scripts/spin_lib.sh

right 'T 2'
for b in 1 2 3 4 5 6; do
	wrong 'T 2' "BREAK $b"
done
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'T 3'
fi
