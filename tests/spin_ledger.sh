#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The ledger of jobs with replicas (docs/redundancy.md): failover, retention, the output rule, all
# states; and that the model notices seven ways of doing it wrong. HALE_LONG=1: larger ones, minutes.
set -eu
model=docs/models/ledger.pml
. scripts/spin_lib.sh

right 'M 2' 'CAP 1'
right 'M 2' 'CAP 1' 'BOUND 1'
for b in 1 2 3 4 6; do
	wrong 'M 2' 'CAP 1' "BREAK $b"
done
wrong 'M 2' 'CAP 1' 'BOUND 1' 'BREAK 5'
wrong 'M 2' 'CAP 1' 'BOUND 1' 'BREAK 7'
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'M 3' 'CAP 1' 'BOUND 2'
	right 'M 3' 'CAP 2'
fi
