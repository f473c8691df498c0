// SPDX-License-Identifier: BSD-3-Clause
/* match/'s and the channels' part in a coordinated checkpoint (seed 001, 2.3.1). States, invariants
 * and the reasons: docs/channels.md; checked by docs/models/suspend.pml. */
#include "match/internal.h"

static void blocked_set(bool suspended)
{
	match.suspended = suspended;
	for (uint32_t i = 0; i < match.nranks; i++)
		match.peer[i].blocked = suspended || match.peer[i].busy;
}

/* From here on every send queues in private memory. */
static void suspend_start(void)
{
	blocked_set(true);
	if (ckpt_is_alone()) { /* with replicas: nothing is ever between two processes but records */
		redundant_cut();
		channel_pause_all();
		return;
	}
	if (redundant_on)
		redundant_suspend();
	rendezvous_suspend();
	channel_suspend_all(ckpt_round());
}

static bool suspend_poll(void)
{
	if (ckpt_is_alone())
		return true;
	channel_poll_all();
	return channel_drained_all();
}

static void save(void)
{
	if (!ckpt_is_alone())
		rendezvous_save();
}

/* A rank may live on another node now, and be reached by another channel. Until that one has let
 * out what it kept, the old one stays. */
void channels_choose(void)
{
	bool settled = channel_settled_all();
	if (redundant_on)
		redundant_channels();
	for (uint32_t i = 0; !redundant_on && i < match.nranks; i++) {
		struct peer *p = &match.peer[i];
		p->channel = channel_for(i);
		if (p->eager_max) /* 0: it has asked for nothing but announcements */
			p->eager_max = *p->channel->eager_max;
	}
	match.anew = true;
	match.work += !settled - match.unsettled;
	match.unsettled = !settled;
}

static void announce(uint32_t process, uint32_t id)
{
	if (redundant_on)
		redundant_announce(process, id);
}

static void resume(bool restored)
{
	if (redundant_on)
		redundant_rejoin(restored);
	channel_resume_all(restored);
	match.anew = true;
	if (restored) {
		channels_choose();
		match_crowd_look();
		wait_resumed();
	}
	if (redundant_on)
		redundant_resume();
	blocked_set(false);
}

static void look(void)
{
	if (redundant_on && !match.suspended)
		match_progress();
}

void match_checkpoint_init(void)
{
	static struct ckpt_participant participant = {
	    .name = "messages",
	    .alone = true,
	    .announce = announce,
	    .look = look,
	    .suspend_start = suspend_start,
	    .suspend_poll = suspend_poll,
	    .save = save,
	    .resume = resume,
	};
	ckpt_participate(&participant);
}
