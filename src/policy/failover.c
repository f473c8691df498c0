/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy/failover.h"

#include <stddef.h>

/* The first reason that holds decides; the order is that of how much each one leaves unknown. */
failover_choice_t failover_choose(const struct failover_facts *f, const char **why)
{
	*why = NULL;
	/* its agents have left before it, so nobody is there to answer */
	if (f->finished)
		return FAILOVER_END;
	if (!f->any_node)
		return FAILOVER_NOTHING_LEFT;
	if (!f->laid_out)
		return FAILOVER_NOTHING_BEGUN;
	if (job_state_over(f->recorded))
		return FAILOVER_END;
	if (f->recorded == JOB_CLEARING)
		*why = "a rollback was under way";
	else if (f->move_went)
		*why = "ranks were about to change their node";
	else if (f->broken)
		return FAILOVER_ROLL_BACK;
	else if (f->record_outdated)
		*why = "ranks were just getting other places";
	else if (f->ranks_on_lost_node)
		*why = "a node was lost";
	if (*why)
		return FAILOVER_ROLL_BACK;
	return f->move_before_go ? FAILOVER_GIVE_UP_MOVE : FAILOVER_GO_ON;
}
