/* SPDX-License-Identifier: BSD-3-Clause */
/* How the ranks of a node leave it because a rule, a user or the head wants them away
 * (docs/migration.md), as a table: (state, event) -> (action, next state).
 *
 *              MIGRATES             HAS_MOVED: told that it has worked
 *   STAYS ------------------> MOVING ------------------------------> STAYS
 *     |                        |  |  STAYS_PUT: told that it has not
 *     |                        |  +--------------------------------> STAYS
 *     | BY_CHECKPOINT          | BY_CHECKPOINT, ROLLS_BACK
 *     +---------------------> PLANNED
 *
 *   PLANNED -- LAID_OUT --> STAYS -- HAS_LEFT --> LEFT -- ALL_BACK --> STAYS
 *
 * Only node_leave_event() assigns a node's state. */
#ifndef HALE_POLICY_LEAVE_H
#define HALE_POLICY_LEAVE_H

#include <stdbool.h>

typedef enum leave_state {
	LEAVE_STAYS,
	LEAVE_MOVING,  /* its ranks migrate, or will when it is their turn */
	LEAVE_PLANNED, /* at the next layout its ranks go elsewhere, and it is a spare */
	LEAVE_LEFT,    /* they went elsewhere by a checkpoint, and not all run again yet */
	LEAVE_STATES
} leave_state_t;

typedef enum leave_event {
	LEAVE_MIGRATES,	     /* a migration of its ranks is asked for, or is taken over */
	LEAVE_BY_CHECKPOINT, /* decided: its ranks go elsewhere with the next layout */
	LEAVE_ROLLS_BACK,    /* all ranks go back to a checkpoint */
	LEAVE_HAS_MOVED,     /* the migration is over, and its ranks are elsewhere */
	LEAVE_STAYS_PUT,     /* migration or checkpoint came to nothing, or nobody wants it now */
	LEAVE_LAID_OUT,	     /* there is a new layout */
	LEAVE_HAS_LEFT,	     /* the layout has its ranks elsewhere, as was planned */
	LEAVE_ALL_BACK,	     /* all ranks run again */
	LEAVE_EVENTS
} leave_event_t;

typedef enum leave_action {
	LEAVE_NOTHING,
	LEAVE_TELL_LEFT,   /* whoever wanted it hears that the node is free */
	LEAVE_TELL_STAYED, /* … that its ranks stay */
} leave_action_t;

struct leave_step {
	leave_action_t action;
	leave_state_t next;
};

/* Total: what a state does not react to changes nothing. */
struct leave_step leave_step(leave_state_t state, leave_event_t event);

/* Its ranks are to be elsewhere, so it gets no more. */
static inline bool leave_is_under_way(leave_state_t state)
{
	return state == LEAVE_MOVING || state == LEAVE_PLANNED;
}

#endif
