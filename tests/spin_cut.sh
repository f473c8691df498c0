#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A checkpoint of a job with replicas and a rollback to it (docs/redundancy.md), all states; and that
# the model notices five ways of doing it wrong.
set -eu
model=docs/models/cut.pml
. scripts/spin_lib.sh

right 'M 2'
for b in 1 2 3 4 5; do
	wrong 'M 2' "BREAK $b"
done
