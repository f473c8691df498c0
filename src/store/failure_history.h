/* SPDX-License-Identifier: BSD-3-Clause */
/* How often this user's jobs have failed on these machines: a line for each job that has ended, in
 * hale/failures in $XDG_STATE_HOME or ~/.local/state. `--ckpt-every auto` reckons with it. Jobs
 * with faults that were injected are left out. Called by: head/. */
#ifndef HALE_STORE_FAILURE_HISTORY_H
#define HALE_STORE_FAILURE_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

/* So many bytes at the end are read; a file that is twice as long begins anew. */
enum { FAILURE_HISTORY_BYTES = 64 << 10 };

struct failure_history {
	uint32_t jobs;
	uint64_t failures;   /* that cost these jobs a rollback or their life */
	double node_seconds; /* that they ran, times their nodes */
};

/* False: there is none. Lines that are no such lines are passed over. */
bool failure_history_read(struct failure_history *h);
/* Adds a job. False: it can't be written, with errno; nothing depends on it. */
bool failure_history_add(double seconds, uint32_t nodes, uint32_t failures);

#endif
