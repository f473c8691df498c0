// SPDX-License-Identifier: BSD-3-Clause
/* A copy of a process comes while all others run (docs/shadows.md, "One pair alone"). Its source
 * announces it: from then on all keep for it what the source may have only after its image, and the
 * source keeps what others may lack of its own.
 *
 *   source   announces ── all keep ──▶ image ──▶ … joins: it is in the view
 *
 *   others   ─ COMES ─▶ coming ── the view has it ──────────────▶ it gets what was kept
 *                         └────── COMES_NOT, the source is dead ─▶ nothing is kept for it
 */
#include "deliver/replicas.h"

#include "ckpt/rank.h"

bool announce_concerns(uint32_t rank)
{
	for (uint32_t s = 0; s < replicas.view.degree; s++)
		if (replicas.wire[living_process(&replicas.view, rank, s)].coming)
			return true;
	return false;
}

/* What it has is a bound below: what its source has got since is sent to it, and dropped there. */
static void expect(uint32_t process, uint32_t source)
{
	struct wire *w = &replicas.wire[process];
	bool mate = living_rank_of(process, replicas.view.nranks) == replicas.rank;

	wire_forget(w);
	channel_renew_all(process);
	w->coming = true;
	w->source = source;
	w->done = source != replicas.process && replicas.wire[source].done;
	w->heard = replicas.determined;
	w->synced = replicas.syncs;
	if (!mate)
		mirror_adopt(process, source);
}

static void expect_not(uint32_t process)
{
	struct wire *w = &replicas.wire[process];

	if (!w->coming)
		return;
	w->coming = false;
	wire_forget(w);
	mirror_trim(living_rank_of(process, replicas.view.nranks));
}

static bool is_asked(uint32_t process)
{
	return process != replicas.process && replica_lives(process);
}

static void tell_everybody(enum replica_record kind, uint32_t process)
{
	struct envelope e = {.kind = (uint8_t)kind, .number = process};

	for (uint32_t p = 0; p < replicas.nprocesses; p++)
		if (is_asked(p))
			replica_tell(p, &e, NULL);
}

/* ---- the source ---- */

static void withdraw(void)
{
	uint32_t process = replicas.announced;

	replicas.announces = false;
	expect_not(process);
	tell_everybody(REPLICA_COMES_NOT, process);
	for (uint32_t r = 0; r < replicas.view.nranks; r++)
		mirror_trim(r);
}

static void look_who_keeps(void)
{
	if (!replicas.announces || replicas.all_keep)
		return;
	for (uint32_t p = 0; p < replicas.nprocesses; p++)
		if (is_asked(p) && !replicas.wire[p].keeps)
			return;
	replicas.all_keep = true;
	link_copy_tell(replicas.announced, false);
}

void redundant_announce(uint32_t process, uint32_t id)
{
	if (replicas.announces)
		withdraw();
	if (process >= replicas.nprocesses || replica_lives(process))
		return;
	replicas.announces = true;
	replicas.all_keep = replicas.joins = false;
	replicas.announced = process;
	replicas.announced_id = id;
	for (uint32_t p = 0; p < replicas.nprocesses; p++)
		replicas.wire[p].keeps = false;
	expect(process, replicas.process);
	tell_everybody(REPLICA_COMES, process);
	look_who_keeps();
}

/* ---- all others ---- */

void announce_heard(uint32_t process, const struct envelope *e)
{
	struct wire *w = e->number < replicas.nprocesses ? &replicas.wire[e->number] : NULL;

	if (!w)
		return;
	if (e->kind == REPLICA_KEEPS) {
		if (!replicas.announces || e->number != replicas.announced)
			return;
		replicas.wire[process].keeps = true;
		look_who_keeps();
	} else if (e->kind == REPLICA_COMES_NOT) {
		replicas.news -= w->told;
		w->told = false;
		expect_not(e->number);
	} else {
		/* later: a channel calls, and is not to be changed meanwhile */
		replicas.news += !w->told;
		w->told = true;
		w->source = process;
	}
}

/* What has been sent before this answer is with the source when it comes there. */
static void keep_for(uint32_t process)
{
	struct wire *w = &replicas.wire[process];
	struct envelope e = {.kind = REPLICA_KEEPS, .number = process};
	uint32_t rank = living_rank_of(process, replicas.view.nranks);

	/* somebody else is in its place still: a view is about to say that he is not */
	if (replica_lives(process))
		return;
	w->told = false;
	replicas.news--;
	if (!replica_lives(w->source))
		return;
	expect(process, w->source);
	if (rank != replicas.rank)
		receipt_tell_anew(rank);
	replica_tell(w->source, &e, NULL);
}

/* ---- both ---- */

void announce_progress(void)
{
	for (uint32_t p = 0; replicas.news && p < replicas.nprocesses; p++)
		if (replicas.wire[p].told)
			keep_for(p);
	if (replicas.announces &&
	    atomic_load(&link_self()->mailbox->ckpt_cancelled) >= replicas.announced_id)
		withdraw();
	if (replicas.joins && determinants_are_safe()) {
		replicas.joins = false;
		link_copy_tell(replicas.announced, true);
	}
}

void announce_join(uint32_t process)
{
	struct envelope done = {.kind = REPLICA_DONE};
	struct wire *w = &replicas.wire[process];

	w->coming = false;
	replicas.view.lost[process] = 0;
	w->channel = channel_for(process);
	w->parts = w->refused = false;
	if (!w->channel) {
		log_warn("rank %u (replica %u) can't reach process %u, which has come",
			 replicas.rank, replicas.slot, process);
		link_abort(70);
	}
	if (replicas.announces && replicas.announced == process) {
		replicas.announces = false;
		replicas.joins = true;
	}
	if (replicas.leaving)
		replica_tell(process, &done, NULL);
	if (living_rank_of(process, replicas.view.nranks) != replicas.rank)
		receipt_tell_anew(living_rank_of(process, replicas.view.nranks));
	else
		mirror_show_anew();
	if (w->first)
		replica_busy(w);
}

/* Some may have acted on neither view: without this they would keep for it for ever. */
void announce_lost(uint32_t process)
{
	if (replicas.announced == process)
		replicas.announces = replicas.joins = false;
	expect_not(process);
	if (replicas.leads)
		tell_everybody(REPLICA_COMES_NOT, process);
}

void announce_follow_view(void)
{
	for (uint32_t p = 0; p < replicas.nprocesses; p++)
		if (replicas.wire[p].coming && replicas.wire[p].source != replicas.process &&
		    !replica_lives(replicas.wire[p].source))
			expect_not(p);
	look_who_keeps();
}

void announce_end(void)
{
	if (replicas.announces && !replicas.suspended)
		withdraw();
	replicas.announces = replicas.joins = false;
	replicas.news = 0;
	for (uint32_t p = 0; p < replicas.nprocesses; p++) {
		replicas.wire[p].told = false;
		expect_not(p);
	}
}
