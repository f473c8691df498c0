#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Who runs at the end of a migration (docs/migration.md), whoever dies and whatever breaks when, all
# states, by streams alone, in a job, and by files; and that the model notices thirteen ways of doing it wrong.
set -eu
model=docs/models/migrate.pml
. scripts/spin_lib.sh

right 'DIRECT 1' 'FAULTS 3'
right 'DIRECT 0' 'FAULTS 3'
wrong 'DIRECT 0' 'FAULTS 1' 'BREAK 1'
wrong 'DIRECT 0' 'FAULTS 1' 'BREAK 2'
wrong 'DIRECT 1' 'FAULTS 1' 'BREAK 3'
wrong 'DIRECT 0' 'FAULTS 2' 'BREAK 4'
wrong 'DIRECT 1' 'FAULTS 0' 'BREAK 5'

right 'JOB 1' 'DIRECT 0' 'FAULTS 3'
right 'JOB 1' 'FILE 1' 'FAULTS 3'
wrong 'JOB 1' 'FAULTS 1' 'BREAK 6'
wrong 'JOB 1' 'FILE 1' 'FAULTS 1' 'BREAK 6'
wrong 'JOB 1' 'FAULTS 0' 'BREAK 7'
wrong 'JOB 1' 'FILE 1' 'FAULTS 1' 'BREAK 8'
wrong 'JOB 1' 'FILE 1' 'FAULTS 0' 'BREAK 9'
wrong 'JOB 1' 'FAULTS 1' 'BREAK 10'
wrong 'JOB 1' 'FILE 1' 'FAULTS 0' 'BREAK 11'
wrong 'JOB 1' 'FAULTS 1' 'BREAK 12'
wrong 'JOB 1' 'FAULTS 1' 'BREAK 13'
