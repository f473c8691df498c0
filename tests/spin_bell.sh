#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Threads that sleep on a bell and on descriptors (docs/network-channel.md), all states; and that the model notices
# mistakes.
set -eu
model=docs/models/bell.pml
. scripts/spin_lib.sh

right 'THREADS 2'
right 'THREADS 3' 'MESSAGES 1'
for mistake in 4 7 9 1 3 8; do
	wrong "BREAK $mistake"
done
