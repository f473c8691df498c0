#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Comparison of what replicas send (docs/redundancy.md, 'Silent errors'), all states; and that the
# model notices two ways of doing it wrong. HALE_LONG=1: two messages, six ways.
set -eu
model=docs/models/compare.pml
. scripts/spin_lib.sh

right 'D 3' 'M 1' 'DEATHS 1'
right 'D 2' 'DEATHS 0'
# audits: the third one is a witness
right 'D 3' 'M 1' 'DEATHS 0' 'WITNESS 1'
right 'D 3' 'M 1' 'DEATHS 1' 'WITNESS 1'
wrong 'D 3' 'M 2' 'DEATHS 0' 'WITNESS 1' 'BREAK 7'
wrong 'D 3' 'M 1' 'DEATHS 0' 'WITNESS 1' 'BREAK 8'
for b in 2 4; do
	wrong 'D 3' 'M 1' 'DEATHS 1' "BREAK $b"
done
if [ "${HALE_LONG:-0}" != 0 ]; then
	right 'D 3' 'M 2' 'DEATHS 1'
	right 'D 3' 'M 2' 'DEATHS 1' 'WITNESS 1'
	for b in 1 3 5; do
		wrong 'D 3' 'M 1' 'DEATHS 1' "BREAK $b"
	done
	wrong 'D 2' 'DEATHS 0' 'BREAK 6'
fi
