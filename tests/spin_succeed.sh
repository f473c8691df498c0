#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# One head after another while ranks change their node (docs/attach.md), lost anywhere from GO on, all
# states; and that the model notices ways of doing it wrong.
set -eu
model=docs/models/succeed.pml
. scripts/spin_lib.sh

right 'HEADS 2'
for b in 1 2 3 4 5 6 7 8 9; do
	wrong 'HEADS 2' "BREAK $b"
done
wrong 'HEADS 3' 'BREAK 10'
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'HEADS 3'
fi
