/* SPDX-License-Identifier: BSD-3-Clause */
/* The head keeps an eye on how fast its job goes, and takes down in the end what it did. */
#include "base/base.h"
#include "job/head.h"

static enum profile_phase phase_of(const struct head *h)
{
	if (h->state != HEAD_RUNNING || !head_all_ready(h) || head_any_finalized(h))
		return PROFILE_DOWN;
	return h->ckpt.phase != CKPT_IDLE ? PROFILE_CHECKPOINT : PROFILE_UNDISTURBED;
}

void head_profile_turn(struct head *h)
{
	struct profile_pace *p = &h->report.pace;
	struct profile_stretch *during = p->phase == PROFILE_CHECKPOINT ? &h->ckpt.during : NULL;
	enum profile_phase next = phase_of(h);

	if (next == PROFILE_CHECKPOINT)
		h->ckpt.during = (struct profile_stretch){0};
	if (next != p->phase)
		profile_pace_turn(p, next, clock_seconds(),
				  profile_progress(h->agent.segment, h->nranks), during);
}

void head_profile_now(struct head *h)
{
	profile_read(&h->report.profile, h->agent.segment, h->nranks);
}

void head_profile_end(struct head *h)
{
	struct error err;

	head_profile_now(h);
	if (h->o->profile && report_write_profile(&h->report, h->o->profile,
						  clock_seconds() - h->began, &err) != HALE_OK)
		log_warn("%s", err.text);
}
