/* SPDX-License-Identifier: BSD-3-Clause */
/* Between libhale_task.so and the job: errors that are asked for while it runs, and what its tasks
 * have done so far. The functions have no prototype that both could include: libhale_task.so finds
 * them by name and goes without when there is no job. */
#include <string.h>

#include "ckpt/rank_private.h"
#include "node/segment.h"

#define API __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* 1: other errors than those of number *seen are asked for; to (size: MAILBOX_DUE) gets their text.
 * A segment after a rollback knows nothing until the head has said it again: what held, holds. */
API int hale_tasks_due(uint32_t *seen, char *to)
{
	struct mailbox *m = link_self()->mailbox;
	uint32_t number = m ? atomic_load_explicit(&m->due_number, memory_order_acquire) : 0;

	if (LIKELY(number == 0 || number == *seen))
		return 0;
	memcpy(to, m->task_due, MAILBOX_DUE);
	to[MAILBOX_DUE - 1] = '\0';
	/* the agent has written the next one meanwhile: the next task sees it */
	if (atomic_load(&m->due_number) != number)
		return 0;
	*seen = number;
	return 1;
}

/* Adds to the meter of this process; enum meter_task. */
API void hale_tasks_meter(const uint64_t add[METER_TASKS])
{
	struct segment *s = link_self()->segment;

	for (int i = 0; s && i < METER_TASKS; i++)
		if (add[i])
			atomic_fetch_add_explicit(
			    &segment_meter(s, link_self()->process)->task[i], add[i],
			    memory_order_relaxed);
}
