/* SPDX-License-Identifier: BSD-3-Clause */
/* The head keeps an eye on how fast its job goes, and takes down in the end what it did. */
#include <string.h>
#include "base/base.h"
#include "job/head.h"

static enum profile_phase phase_of(const struct head *h)
{
	if (h->state != HEAD_RUNNING || !head_all_ready(h) || head_any_finalized(h))
		return PROFILE_DOWN;
	return h->ckpt.phase != CKPT_IDLE ? PROFILE_CHECKPOINT : PROFILE_UNDISTURBED;
}

static uint64_t progress(const struct head *h)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; h->agent.segment && k < h->placement.nodes; k++)
		sum += profile_progress(h->agent.nodes[k].segment, h->nranks);
	return sum;
}

void head_profile_turn(struct head *h)
{
	struct profile_pace *p = &h->report.pace;
	struct profile_stretch *during = p->phase == PROFILE_CHECKPOINT ? &h->ckpt.during : NULL;
	enum profile_phase next = phase_of(h);

	if (next == PROFILE_CHECKPOINT)
		h->ckpt.during = (struct profile_stretch){0};
	if (next != p->phase)
		profile_pace_turn(p, next, clock_seconds(), progress(h), during);
}

void head_profile_now(struct head *h)
{
	memset(&h->report.profile, 0, sizeof(h->report.profile));
	for (uint32_t k = 0; h->agent.segment && k < h->placement.nodes; k++)
		profile_add_node(&h->report.profile, h->agent.nodes[k].segment, h->nranks);
}

void head_profile_end(struct head *h)
{
	struct error err;

	head_profile_now(h);
	if (h->o->profile && report_write_profile(&h->report, h->o->profile,
						  clock_seconds() - h->began, &err) != HALE_OK)
		log_warn("%s", err.text);
}
