/* SPDX-License-Identifier: BSD-3-Clause */
/* --hang-after: tells the head of a rank that somebody has stopped (SIGSTOP) for that long. The
 * head decides what follows. A rank that is paused with the whole job does not count, nor one that
 * a debugger holds. */
#include "agent/agent_private.h"

/* A stop is noticed at this share of the time later at most. */
#define LOOKS 8

static bool stands_still(const struct agent *a, const struct agent_rank *k)
{
	if (k->pid == 0 || k->member <= 0 || k->ended || a->lease.paused)
		return false;
	return agent_process_state(agent_thread_of(k->member)) == 'T';
}

static void look(void *arg)
{
	struct agent *a = arg;
	double limit = (double)a->setup.hang_ns * 1e-9, now = clock_seconds();

	for (uint32_t r = 0; a->ranks && r < a->setup.nranks; r++) {
		struct agent_rank *k = &a->ranks[r];

		if (!agent_has(a, r) || !stands_still(a, k)) {
			k->still_since = 0;
		} else if (k->still_since == 0) {
			k->still_since = now;
		} else if (now - k->still_since >= limit) {
			agent_send(
			    a, &(struct message){.type = MSG_HUNG,
						 .rank = r,
						 .value = (int32_t)((now - k->still_since) * 1e3)});
			k->still_since = now; /* said once, and again if nothing follows */
		}
	}
	loop_timer_set(&a->loop, &a->hang, limit / LOOKS, look, a);
}

void agent_hang_start(struct agent *a)
{
	if (a->setup.hang_ns > 0)
		loop_timer_set(&a->loop, &a->hang, (double)a->setup.hang_ns * 1e-9 / LOOKS, look,
			       a);
}

void agent_hang_stop(struct agent *a)
{
	loop_timer_clear(&a->loop, &a->hang);
}
