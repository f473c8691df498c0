/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the ranks may run (docs/nodes.md). Calls ranks/. */
#ifndef HALE_AGENT_LEASE_AGENT_LEASE_H
#define HALE_AGENT_LEASE_AGENT_LEASE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "wire/lease/lease.h"
#include "wire/session/loop.h"

struct agent;

/* Whether the ranks may run. */
struct agent_lease {
	struct lease_held held;
	struct loop_timer ask, fence;
	bool paused, resuming; /* the ranks are stopped; they go on with the next lease */
	bool frozen;	      /* paused because the lease ran out, not because the user wanted it */
	uint64_t resume_from; /* which must be an answer to this ask or a later one */
};

/* agent_lease.c */
void agent_lease_renew(struct agent *a); /* asks the new head at once */
void agent_lease_start(struct agent *a);
void agent_lease_again(struct agent *a); /* a successor's */
void agent_lease_stop(struct agent *a);
void agent_lease_granted(struct agent *a, uint64_t number);
void agent_pause(struct agent *a, bool pause);

#endif
