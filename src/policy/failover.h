/* SPDX-License-Identifier: BSD-3-Clause */
/* What a head does first that follows another head (docs/attach.md). All agents have answered, or
 * their leases are over; the answers and the last head's record on disk are the facts. */
#ifndef HALE_POLICY_FAILOVER_H
#define HALE_POLICY_FAILOVER_H

#include <stdbool.h>
#include "policy/job_state.h"

struct failover_facts {
	job_state_t recorded;	 /* the last head's state, as its record says */
	bool finished;		 /* it had seen the end of all ranks, and was about to leave */
	bool laid_out;		 /* ranks had been started */
	bool any_node;		 /* some agent has answered */
	bool move_went;		 /* a migration had passed GO on a node, and can't be finished */
	bool broken;		 /* the answers do not fit one layout of the ranks */
	bool record_outdated;	 /* the last head had written down more than was read first */
	bool ranks_on_lost_node; /* the last head knew of a loss, and had not rolled back yet */
	bool move_before_go;	 /* a migration was under way that can still be given up */
};

typedef enum failover_choice {
	FAILOVER_GO_ON,		/* the ranks run on as they are */
	FAILOVER_GIVE_UP_MOVE,	/* they do, and the migration is taken back */
	FAILOVER_ROLL_BACK,	/* all ranks go back to a checkpoint */
	FAILOVER_END,		/* the job ends, as the last head had decided */
	FAILOVER_NOTHING_LEFT,	/* no node answers: the job ends */
	FAILOVER_NOTHING_BEGUN, /* the last head ended before any rank ran: the job ends */
} failover_choice_t;

/* *why gets the beginning of a sentence for FAILOVER_ROLL_BACK ("... when the last head ended"),
 * or NULL where `broken` has its own. */
failover_choice_t failover_choose(const struct failover_facts *f, const char **why);

#endif
