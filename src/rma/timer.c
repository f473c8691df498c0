/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress for far origins while this process computes: the library starts no threads, so a timer
 * interrupts the program and makes a round of progress (ckpt/tick.c). It runs only while there is a
 * window with a member that has to send messages. */
#include "ckpt/rank.h"
#include "rma/internal.h"

static bool allowed;

void rma_timer_allow(bool yes)
{
	allowed = yes;
}

static bool timer_wanted(void)
{
	for (const struct win *w = rma.windows; w; w = w->next)
		for (int i = 0; i < w->comm->size; i++)
			if (i != w->comm->rank &&
			    (!rma_is_here(w, i) || (!rma.copies && !w->part.shared)))
				return true;
	return false;
}

void rma_timer_stop(void)
{
	tick_stop();
}

void rma_timer_look(void)
{
	if (!allowed || !timer_wanted())
		tick_stop();
	else if (!tick_start(match_progress))
		log_info("no timer for one-sided operations: those from other nodes wait for this "
			 "process's next MPI call");
}
