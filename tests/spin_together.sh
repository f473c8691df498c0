#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A checkpoint of ranks that share things of the kernel (docs/coordinated-checkpoint.md), all states; and that the
# model notices either of the two waits when it is left out.
set -eu
model=docs/models/together.pml
. scripts/spin_lib.sh

right 'BREAK 0'
wrong 'BREAK 1'
wrong 'BREAK 2'
