#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The pause of a device process, with its capture, end and restore, in the middle of calls, copies
# and a destruction (docs/offload.md, 'Draining'), all states; and that the model notices seven ways
# of doing it wrong. HALE_LONG=1: larger ones, minutes.
set -eu
model=docs/models/pause.pml
. scripts/spin_lib.sh

right 'CALLERS 2'
right 'CALLERS 1' 'DESTROY 1'
for b in 1 2 3 4 5 6; do
	wrong 'CALLERS 2' "BREAK $b"
done
wrong 'CALLERS 1' 'DESTROY 1' 'BREAK 7'
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'CALLERS 1' 'CALLS 2' 'ROUNDS 2'
	right 'CALLERS 2' 'CALLS 2'
fi
