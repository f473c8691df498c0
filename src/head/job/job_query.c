/* SPDX-License-Identifier: BSD-3-Clause */
/* What any part of the head may ask of the job. */
#include <stdio.h>
#include "base/base.h"
#include "head/head.h"

double head_seconds(const struct head *h)
{
	return clock_seconds() - h->job_began;
}

void head_report_nodes(struct head *h)
{
	for (uint32_t k = 0; k < h->node_set.count; k++)
		report_node_has(&h->report, h->node_set.nodes[k].name,
				node_set_ranks_on(&h->node_set, &h->node_set.nodes[k]),
				head_seconds(h));
}

bool head_rank_alive(const struct head *h, uint32_t rank)
{
	return !h->ranks[rank].ended;
}

void head_rank_reset(struct head *h, uint32_t rank, int ended_with)
{
	struct head_rank *r = &h->ranks[rank];

	loop_timer_clear(&h->loop, &r->lost);
	*r = (struct head_rank){.ended = ended_with >= 0,
				.exit_status = ended_with,
				.last_signal = r->last_signal,
				.launched_at = head_seconds(h),
				.head = h};
}

const char *head_name(const struct head *h, uint32_t process, char text[HEAD_NAME])
{
	uint32_t rank = living_rank_of(process, h->view.nranks);

	if (h->degree > 1)
		snprintf(text, HEAD_NAME, "replica %u of rank %u",
			 living_slot_of(process, h->view.nranks), rank);
	else
		snprintf(text, HEAD_NAME, "rank %u", rank);
	return text;
}

bool replicas_is_wanted(const struct head *h, uint32_t process)
{
	uint32_t rank = living_rank_of(process, h->view.nranks);

	return living_count(&h->view, rank) < h->moves.clones.wanted[rank];
}

bool head_all_ready(const struct head *h)
{
	for (uint32_t r = 0; r < h->nranks; r++) {
		const struct node_set_rank *k = &h->node_set.ranks[r];

		if (replicas_is_lost(h, r))
			continue;
		if (h->ranks[r].ended) {
			if (!h->o->no_mpi)
				return false;
		} else if (!k->met || (!h->o->no_mpi && !k->initialized)) {
			return false;
		}
	}
	return true;
}

bool head_any_finalized(const struct head *h)
{
	for (uint32_t r = 0; !h->o->no_mpi && r < h->nranks; r++)
		if (h->node_set.ranks[r].finalized)
			return true;
	return false;
}

const char *head_state_name(const struct head *h)
{
	switch (h->state) {
	case JOB_STARTING:
		return h->succession.takeover ? "attaching" : "starting";
	case JOB_RUNNING:
		if (h->ckpt.phase != CKPT_IDLE)
			return "checkpointing";
		return head_all_ready(h) || head_any_finalized(h) ? "running" : "starting";
	case JOB_CLEARING:
	case JOB_RESTORING:
		return "restoring";
	default:
		return "ending";
	}
}

const char *head_why_not_ready(const struct head *h)
{
	if (h->program->runtime[0])
		return h->program->unprotected;
	if (head_all_ready(h))
		return NULL;
	if (h->program->unprotected[0])
		return h->program->unprotected;
	return h->mpi_seen || h->o->no_mpi ? "not all ranks are through MPI_Init yet; try again"
					   : "no rank has called MPI_Init; programs without MPI "
					     "are checkpointed, and moved, "
					     "when started with --no-mpi";
}

hale_status_t head_open_store(struct head *h, struct error *err)
{
	hale_status_t status;

	if (h->files.is_open)
		return HALE_OK;
	/* its name was free when it began, but others, elsewhere, may have begun since */
	if (!h->start->job && !h->files.is_ours) {
		h->recovery.files.dir_there = store_there(h->o->ckpt_dir);
		status = store_claim(h->o->ckpt_dir, h->id.job, err);
		if (status != HALE_OK)
			return status;
		h->files.is_ours = true;
	}
	status = store_open(&h->files.store, h->o->ckpt_dir, h->id.job, !h->o->no_fsync, err);
	if (status != HALE_OK)
		return status;
	h->files.is_open = true;
	record_open(&h->files.record, h->files.store.job_folder);
	return HALE_OK;
}
