/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of the MPI call that this thread is in, for whoever measures calls (mpi/profile/).
 * Layers below note in it when the call stops being short. */
#ifndef HALE_MATCH_CALL_H
#define HALE_MATCH_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include "base/base.h"

struct match_call {
	uint64_t entered; /* 0: this call's beginning is not timed */
	uint64_t since;	  /* it waits in earnest, or moves much, since then; 0: it doesn't */
	const char *function; /* "MPI_Recv", for example */
	uint32_t what;	  /* enum meter_call */
	uint32_t weight;  /* calls that this one stands for, if timed */
	bool noted;	  /* either of the first two isn't 0 */
};
/* Told when a call stops being short, with its name; NULL: nobody. */
extern void (*match_call_tell)(const char *name);
extern __thread struct match_call match_call __attribute__((tls_model("initial-exec")));

/* Payloads from here on take so long that reading the clock doesn't count. */
enum { MATCH_LONG_BYTES = 65536 };

/* Time that checkpoints and restarts took: the clock below stands still meanwhile, also if the
 * process comes back on another machine. */
extern uint64_t match_skipped_ns;

static inline uint64_t match_clock_ns(void)
{
	return clock_ns() - match_skipped_ns;
}

/* From now on this call is not short. */
static inline void match_call_long(void)
{
	if (match_call.since)
		return;
	match_call.since = match_clock_ns();
	match_call.noted = true;
	if (match_call_tell)
		match_call_tell(match_call.function);
}

#endif
