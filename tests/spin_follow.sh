#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A head of a job with replicas is followed by another one (docs/attach.md), all states; and that the
# model notices ways of doing it wrong.
set -eu
model=docs/models/follow.pml
. scripts/spin_lib.sh

right 'HEADS 2' 'DEATHS 2' 'CLONES 1'
right 'HEADS 3' 'DEATHS 2' 'CLONES 1'
for b in 1 2 3 4 5 6; do
	wrong 'HEADS 2' 'DEATHS 2' 'CLONES 1' "BREAK $b"
done
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'HEADS 3' 'DEATHS 3' 'CLONES 2'
fi
