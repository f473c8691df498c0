#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The protocol of docs/coordinated-checkpoint.md, all states.
exec sh scripts/spin.sh docs/models/checkpoint.pml
