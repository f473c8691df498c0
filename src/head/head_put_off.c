/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the head while a child writes a manifest (child_task.h). What loses ranks goes back to
 * the newest checkpoint, which may be that one. To wait for it in the middle of all would keep
 * leases from nodes that have done nothing, so the event waits:
 *
 *   KILLED, NODE_LOST … ─▶ put off ─▶ and all after it, in order ─▶ the child has ended ─▶ done
 *
 * The end of the job (STOP) doesn't wait. The ranks that are left run meanwhile, or wait for those
 * that are gone; no checkpoint and no migration begins. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "head/head_private.h"

bool head_is_unsettled(const struct head *h)
{
	return child_task_busy(&h->ckpt.commit) || child_task_busy(&h->levels.rewrite) ||
	       h->put_off.count > 0;
}

/* What has to know the newest checkpoint waits until it is known, and what happens after it waits
 * for that. All else goes on: above all leases are granted. */
static bool must_wait(const struct head *h, job_event_t event)
{
	if (!head_unsettled(h) || event == JOB_STOP || h->state < JOB_RUNNING ||
	    h->state > JOB_RESTORING)
		return false;
	return h->put_off.count > 0 || job_event_needs_newest(h->state, event);
}

/* False: there is no memory for it, so it is done now, and waits for the disk. */
static bool put_off(struct head *h, job_event_t event, uint32_t rank)
{
	struct put_off_event *more;

	if (event == JOB_ALL_GONE) { /* others may be started meanwhile */
		h->put_off.gone = true;
		return true;
	}
	more = realloc(h->put_off.list, (h->put_off.count + 1) * sizeof(*more));
	if (!more)
		return false;
	h->put_off.list = more;
	more += h->put_off.count++;
	*more = (struct put_off_event){.event = event, .rank = rank, .lost = h->lost};
	log_info("what has happened to rank %u is dealt with when the manifest is written", rank);
	/* nobody who is gone becomes part of one that is under way beside it */
	if (event == JOB_RANK_KILLED)
		checkpoint_abandon_open(h, "a rank was killed");
	if (event == JOB_NODE_LOST)
		checkpoint_abandon_open(h, "a node was lost");
	return true;
}

bool head_put_off(struct head *h, job_event_t event, uint32_t rank)
{
	return must_wait(h, event) && put_off(h, event, rank);
}

void head_put_off_over(struct head *h)
{
	struct put_off_event *list = h->put_off.list;
	size_t count = h->put_off.count;
	bool gone = h->put_off.gone;

	if (child_task_busy(&h->ckpt.commit) || child_task_busy(&h->levels.rewrite))
		return;
	h->put_off.list = NULL;
	h->put_off.count = 0;
	h->put_off.gone = false;
	for (size_t i = 0; i < count; i++) {
		h->lost = list[i].lost;
		head_event(h, list[i].event, list[i].rank);
	}
	free(list);
	if (gone)
		head_all_gone_soon(h);
}

static void settled_now(void *arg)
{
	head_settled(arg);
}

void head_put_off_over_soon(struct head *h)
{
	loop_timer_set(&h->loop, &h->put_off.settled, 0, settled_now, h);
}

void head_put_off_fini(struct head *h)
{
	loop_timer_clear(&h->loop, &h->put_off.settled);
	free(h->put_off.list);
	h->put_off.list = NULL;
	h->put_off.count = 0;
}
