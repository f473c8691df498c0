/* SPDX-License-Identifier: BSD-3-Clause */
/* The way back to a checkpoint, from the first process that becomes an image to the moment when all
 * ranks run again. recover.c starts these processes. */
#include <signal.h>
#include <stdio.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "node/proto.h"
#include "head/failover/succession.h"
#include "head/watch/watch.h"

/* How long the ranks were away, from the first failure that is not made good yet; a restart by hand
 * begins with its first process. */
static double report_restart(struct head *h)
{
	struct report *r = &h->report;
	size_t i = r->failure_count;
	struct report_failure *f;

	while (i > 1 && r->failures[i - 1].together)
		i--;
	f = i > 0 ? &r->failures[i - 1] : NULL;
	if (!f || f->restart_seconds > 0)
		return clock_seconds() - h->recovery.began;
	f->restart_seconds = head_seconds(h) - f->at_seconds;
	return f->restart_seconds;
}

static bool all_are_met(const struct head *h)
{
	for (uint32_t r = 0; r < h->nranks; r++)
		if (!h->ranks[r].ended && !h->node_set.ranks[r].met)
			return false;
	return true;
}

/* What is to become an image has no handler yet, and would end. */
void head_signals_pass(struct head *h)
{
	if (!h->signals.usr2_waits || h->state == JOB_CLEARING || h->state == JOB_RESTORING)
		return;
	h->signals.usr2_waits = false;
	node_set_signal_all(&h->node_set, SIGUSR2);
}

void head_look_back(struct head *h, uint32_t rank)
{
	if (all_are_met(h))
		head_step(h, JOB_ALL_BACK, rank);
}

void head_look_anew(struct head *h)
{
	char took[16];

	if (!h->recovery.anew || !all_are_met(h))
		return;
	h->recovery.anew = false;
	head_say(h, "all ranks run again from the beginning, %s later",
		 units_show_seconds(report_restart(h), took));
	head_signals_pass(h);
}

void head_go_on(struct head *h, uint32_t rank)
{
	struct json_out j;
	char took[16];
	double away = report_restart(h);

	head_report_nodes(h);
	watch_rollback_done(h);
	leave_over(h);
	head_profile_turn(h);
	if (h->recovery.target)
		head_say(h, "all ranks run again from checkpoint %u, %s later", h->recovery.target,
			 units_show_seconds(away, took));
	record_begin(&j, "restored");
	json_uint(&j, "checkpoint", h->recovery.target);
	json_uint(&j, "generation", h->generation);
	record_end(&h->files.record, &j);
	succession_save(h);
	head_signals_pass(h);
	checkpoint_interval_start(h);
	if (h->degree > 1)
		recover_replicas_run(h);
	recover_check_start(h);
	warm_again(h);
	checkpoint_poll(h);
}

/* Ranks run from images that turn out to be damaged: nothing they did counts. */
void head_reject_damaged(struct head *h, uint32_t rank)
{
	recover_reject(h);
	head_roll_back(h);
}

void head_look_back_done(struct head *h, uint32_t rank)
{
	head_all_gone_soon(h);
	head_look_back(h, rank);
}

/* The image is to blame for a process that ends before it has become the image. */
void head_refuse_target(struct head *h, uint32_t rank)
{
	recover_refuse(h, "rank %u could not be rebuilt from it",
		       living_rank_of(rank, h->view.nranks));
	if (h->ranks[rank].exit_status == EXIT_IMAGE_BAD)
		recover_reject(h);
	else
		recover_pass_over(h);
	head_roll_back(h);
}

void head_late_target(struct head *h, uint32_t rank)
{
	recover_refuse(h, "it was not restored in time");
	recover_reject(h);
	head_roll_back(h);
}
