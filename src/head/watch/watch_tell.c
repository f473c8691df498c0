/* SPDX-License-Identifier: BSD-3-Clause */
/* What the head does, as events: docs/backplane.md lists them with their payloads. A REASON stands
 * last, as it is a sentence. */
#include <stdio.h>
#include "base/base.h"
#include "ftb/ftb.h"
#include "head/watch/watch_private.h"
#include "store/store.h"

/* As in seed 001, 3.4, what the launcher asks for is in its namespace, and what comes of it in that
 * of who does it there: the MPI library, the node's agent (FTB_MIGRATE_PIC). */
#define SPACE	  "FTB.JL"
#define SPACE_MPI "FTB.MPI"

enum { RANK_TEXT = 12 }; /* a comma and a number */

void watch_job_begun(struct head *h)
{
	if (!h->watch)
		return;
	h->watch->begun = true;
	if (h->restarted)
		watch_tell(h, SPACE, "FTB_JOB_RESTARTED", FTB_INFO,
			   "JOB:%s::RANKS:%u::NODES:%u::CHECKPOINT:%u::PROGRAM:%s", h->id.job,
			   h->nranks, h->node_set.placement.nodes, h->recovery.target,
			   h->program->path);
	else
		watch_tell(h, SPACE, "FTB_JOB_STARTED", FTB_INFO,
			   "JOB:%s::RANKS:%u::NODES:%u::PROGRAM:%s", h->id.job, h->nranks,
			   h->node_set.placement.nodes, h->program->path);
	watch_rules_begin(h->watch);
}

void watch_rank_died(struct head *h, uint32_t rank, int sig, const char *what)
{
	const char *node = node_set_node_of(&h->node_set, rank)->name;

	watch_tell(h, SPACE, "FTB_RANK_DIED", FTB_ERROR,
		   "JOB:%s::RANK:%u::NODE:%s::SIGNAL:%d::REASON:%s", h->id.job,
		   living_rank_of(rank, h->view.nranks), node, sig, what);
}

void watch_sdc(struct head *h, const struct report_sdc *s)
{
	watch_tell(h, SPACE, "FTB_SDC", s->slot >= 0 ? FTB_WARNING : FTB_ERROR,
		   "JOB:%s::RANK:%u::SLOT:%d::NODE:%s::PEER:%u::CONTEXT:%u::MESSAGE:%u::BYTES:%u"
		   "::ACTION:%s",
		   h->id.job, s->rank, s->slot, s->node, s->peer, s->context, s->message, s->bytes,
		   s->action);
}

void watch_rollback_begun(struct head *h, uint32_t to, double lost_seconds)
{
	watch_tell(h, SPACE, "FTB_ROLLBACK", FTB_WARNING,
		   "JOB:%s::CHECKPOINT:%u::LOST_SECONDS:%.3f", h->id.job, to, lost_seconds);
}

void watch_rollback_done(struct head *h)
{
	watch_nodes(h);
	watch_tell(h, SPACE, "FTB_ROLLBACK_DONE", FTB_INFO,
		   "JOB:%s::CHECKPOINT:%u::RESTART:%u::SECONDS:%.3f", h->id.job, h->recovery.target,
		   h->report.restarts, clock_seconds() - h->recovery.began);
}

void watch_checkpoint_begun(struct head *h)
{
	watch_tell(h, SPACE, "FTB_CHECKPOINT", FTB_INFO, "JOB:%s::ID:%u::BASE:%u", h->id.job,
		   h->ckpt.id, h->ckpt.base);
}

void watch_checkpoint_done(struct head *h, const struct store_manifest *m, const char *path)
{
	watch_tell(h, SPACE_MPI, "FTB_CHECKPOINT_DONE", FTB_INFO,
		   "JOB:%s::ID:%u::BYTES:%llu::SECONDS:%.3f::PAUSE_SECONDS:%.6f::PATH:%s",
		   h->id.job, m->id, (unsigned long long)m->bytes, m->seconds, m->pause_seconds,
		   path);
}

void watch_checkpoint_failed(struct head *h, uint32_t id, const char *why)
{
	watch_tell(h, SPACE_MPI, "FTB_CHECKPOINT_FAILED", FTB_WARNING, "JOB:%s::ID:%u::REASON:%s",
		   h->id.job, id, why);
}

void watch_arrived(struct head *h, uint32_t node,
		   bool (*has_come)(const struct head *h, uint32_t rank, uint32_t node,
				    const void *arg),
		   const void *arg)
{
	char list[EVENT_PAYLOAD_MAX - JOB_NODE_NAME] = "";
	size_t len = 0;

	for (uint32_t r = 0; r < h->nranks && len < sizeof(list) - RANK_TEXT; r++)
		if (has_come(h, r, node, arg))
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%u",
						len ? "," : "", r);
	if (len)
		watch_tell(h, SPACE, "FTB_MIGRATE_IPT", FTB_INFO, "%s %s",
			   h->node_set.nodes[node].name, list);
}
