/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy/leave.h"

#include <stddef.h>

struct leave_row {
	leave_state_t state;
	leave_event_t event;
	leave_action_t action;
	leave_state_t next;
};

static const struct leave_row rows[] = {
    {LEAVE_STAYS, LEAVE_MIGRATES, LEAVE_NOTHING, LEAVE_MOVING},
    {LEAVE_STAYS, LEAVE_BY_CHECKPOINT, LEAVE_NOTHING, LEAVE_PLANNED},
    {LEAVE_STAYS, LEAVE_HAS_LEFT, LEAVE_NOTHING, LEAVE_LEFT},

    {LEAVE_MOVING, LEAVE_HAS_MOVED, LEAVE_TELL_LEFT, LEAVE_STAYS},
    {LEAVE_MOVING, LEAVE_STAYS_PUT, LEAVE_TELL_STAYED, LEAVE_STAYS},
    {LEAVE_MOVING, LEAVE_BY_CHECKPOINT, LEAVE_NOTHING, LEAVE_PLANNED},
    {LEAVE_MOVING, LEAVE_ROLLS_BACK, LEAVE_NOTHING, LEAVE_PLANNED},

    {LEAVE_PLANNED, LEAVE_STAYS_PUT, LEAVE_TELL_STAYED, LEAVE_STAYS},
    {LEAVE_PLANNED, LEAVE_LAID_OUT, LEAVE_NOTHING, LEAVE_STAYS},

    /* it may be given ranks and be left again before all are back */
    {LEAVE_LEFT, LEAVE_MIGRATES, LEAVE_NOTHING, LEAVE_MOVING},
    {LEAVE_LEFT, LEAVE_BY_CHECKPOINT, LEAVE_NOTHING, LEAVE_PLANNED},
    {LEAVE_LEFT, LEAVE_ALL_BACK, LEAVE_NOTHING, LEAVE_STAYS},
};

struct leave_step leave_step(leave_state_t state, leave_event_t event)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].state == state && rows[i].event == event)
			return (struct leave_step){rows[i].action, rows[i].next};
	return (struct leave_step){LEAVE_NOTHING, state};
}
