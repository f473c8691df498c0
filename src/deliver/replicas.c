// SPDX-License-Identifier: BSD-3-Clause
/* Jobs with replicas: beginning and end, changes of view, and records that wait for room. */
#include "deliver/replicas.h"

#include <stdlib.h>
#include <string.h>
#include "ckpt/rank.h"

enum {
	KEPT_MAX = 256 << 20,
	LEND_MIN = 12 << 10, /* shorter ones find room in a ring of shared memory */
};

struct replicas replicas;
bool redundant_on;

void *replica_memory(size_t bytes)
{
	void *p = heap_alloc(bytes);

	if (LIKELY(p != NULL))
		return p;
	log_warn("rank %u (replica %u) has no memory for a message of %lu bytes: give the job more "
		 "memory, or less with HALE_RETAIN_MAX",
		 replicas.rank, replicas.slot, (unsigned long)bytes);
	link_abort(70);
}

struct lane *replica_lane(uint32_t rank, uint32_t context)
{
	struct remote *r = &replicas.remote[rank];

	if (UNLIKELY(context >= DELIVER_CONTEXTS)) {
		log_warn(
		    "internal error: rank %u was told of context %u by rank %u, which can't be; "
		    "please report this",
		    replicas.rank, context, rank);
		link_abort(70);
	}
	struct lane **block = &r->lanes[context / LANES];
	if (UNLIKELY(!*block)) {
		*block = replica_memory(LANES * sizeof(**block));
		memset(*block, 0, LANES * sizeof(**block));
	}
	return *block + context % LANES;
}

/* ---- records that wait ---- */

void replica_busy(struct wire *w)
{
	replicas.busy += !w->busy;
	w->busy = true;
}

/* To a process that needs no messages any more, but serves those that do. */
static bool word_still_counts(const struct envelope *e)
{
	bool of_copies =
	    e->kind == REPLICA_COMES || e->kind == REPLICA_KEEPS || e->kind == REPLICA_COMES_NOT;

	/* which the head gives up when a process ends; nobody stays for that */
	return e->kind == REPLICA_DONE || e->kind == REPLICA_FETCH || e->kind == REPLICA_TAKEN ||
	       (of_copies && !replicas.leaving);
}

void replica_tell(uint32_t process, const struct envelope *e, const void *payload)
{
	struct wire *w = &replicas.wire[process];

	if (UNLIKELY(w->done) && !word_still_counts(e))
		return;
	if (LIKELY(!w->first && !replicas.suspended && !w->coming) &&
	    w->channel->send(process, e, payload))
		return;
	struct word *word = replica_memory(sizeof(*word) + e->length);
	word->next = NULL;
	word->envelope = *e;
	if (e->length)
		memcpy(word->payload, payload, e->length);
	if (w->last)
		w->last->next = word;
	else
		w->first = word;
	w->last = word;
	if (!w->coming)
		replica_busy(w);
}

/* Words that mean nothing to a process which needs no messages any more. */
static void words_drop(struct wire *w)
{
	w->last = NULL;
	for (struct word **at = &w->first; *at;) {
		struct word *word = *at;
		if (word_still_counts(&word->envelope)) {
			w->last = word;
			at = &word->next;
			continue;
		}
		*at = word->next;
		heap_free(word);
	}
}

void replica_done(uint32_t process)
{
	struct wire *w = &replicas.wire[process];

	w->done = true;
	w->carries = CARRIES_NOTHING;
	w->begun = false;
	mirror_loans_forget(w);
	w->next = NULL;
	words_drop(w);
	mirror_trim(living_rank_of(process, replicas.view.nranks));
}

static int words_send(struct wire *w, uint32_t process)
{
	int sent = 0;

	while (w->first && w->channel->send(process, &w->first->envelope, w->first->payload)) {
		struct word *word = w->first;
		w->first = word->next;
		if (!w->first)
			w->last = NULL;
		heap_free(word);
		sent++;
	}
	return sent;
}

static int busy_send(void)
{
	int sent = 0;

	for (uint32_t p = 0; replicas.busy && p < replicas.nprocesses; p++) {
		struct wire *w = &replicas.wire[p];
		if (!w->busy)
			continue;
		w->busy = false;
		replicas.busy--;
		sent += words_send(w, p);
		if (w->first)
			replica_busy(w);
		else
			sent += mirror_push(p);
	}
	return sent;
}

/* ---- views ---- */

void wire_forget(struct wire *w)
{
	while (w->first) {
		struct word *word = w->first;
		w->first = word->next;
		heap_free(word);
	}
	kept_free(w->assembly);
	w->assembly = NULL;
	w->last = NULL;
	w->next = NULL;
	w->carries = CARRIES_NOTHING;
	w->begun = w->refused = false;
	mirror_loans_forget(w);
	replicas.busy -= w->busy;
	w->busy = false;
}

/* What the dead have put into shared memory before is still there, and counts: then what they had
 * decided is known. */
static void inheritance_take(void)
{
	while (channel_poll_all() > 0)
		continue;
}

static void view_follow(uint32_t number)
{
	struct segment *s = link_self()->segment;

	inheritance_take();
	for (uint32_t p = 0; p < replicas.nprocesses; p++) {
		uint32_t how = atomic_load(&segment_mailbox(s, p)->lost);

		if (how == 0 && replicas.wire[p].coming)
			announce_join(p);
		if (how == 0 || !living_lose(&replicas.view, p))
			continue;
		wire_forget(&replicas.wire[p]);
		if (living_rank_of(p, replicas.view.nranks) == replicas.rank)
			announce_lost(p);
		if (how == LIVING_CONVICTED)
			compare_discredit(p);
	}
	replicas.view.number = number;
	announce_follow_view();
	mirror_follow_view();
	compare_follow_view();
	determinants_follow_view(true);
}

int redundant_progress(void)
{
	uint32_t number = atomic_load_explicit(&link_self()->segment->view, memory_order_acquire);
	int moved = 0;

	if (UNLIKELY(number != replicas.view.number)) {
		view_follow(number);
		moved++;
	}
	if (UNLIKELY(replicas.lead_again))
		determinants_lead();
	if (UNLIKELY(replicas.news || replicas.announces || replicas.joins))
		announce_progress();
	return replicas.busy ? moved + busy_send() : moved;
}

/* ---- checkpoints and moves, and processes that come back (docs/redundancy.md, "Clones") ---- */

void redundant_cut(void)
{
	uint32_t number = atomic_load(&link_self()->segment->view);

	if (number != replicas.view.number)
		view_follow(number);
	replicas.suspended = true;
	blocks_forget();
}

void redundant_suspend(void)
{
	announce_end();
	redundant_cut();
}

void redundant_channels(void)
{
	for (uint32_t p = 0; p < replicas.nprocesses; p++) {
		replicas.wire[p].channel = channel_for(p);
		replicas.wire[p].parts = false;
		if (replicas.wire[p].channel || !replica_lives(p))
			continue;
		log_warn("rank %u (replica %u) can't reach process %u any more", replicas.rank,
			 replicas.slot, p);
		link_abort(70);
	}
}

/* Of which replica is a process a copy that was dead in our view? The lowest that lived. */
static uint32_t source_of(uint32_t process)
{
	uint32_t rank = living_rank_of(process, replicas.view.nranks);

	return living_process(&replicas.view, rank, (uint32_t)living_leader(&replicas.view, rank));
}

/* What was to be said to the source its copy wants to know as well, decisions too, but not what
 * this process has heard: that it says anew. What the source lends the copy lends again. */
static void words_copy(uint32_t process, uint32_t source)
{
	for (const struct word *word = replicas.wire[source].first; word; word = word->next)
		if (word->envelope.kind != REPLICA_HEARD && word->envelope.kind != REPLICA_TAKEN)
			replica_tell(process, &word->envelope, word->payload);
}

static void process_revive(uint32_t process)
{
	uint32_t source = source_of(process);
	struct wire *w = &replicas.wire[process];

	wire_forget(w);
	channel_forget_all(process);
	w->done = replicas.wire[source].done;
	w->heard = source == replicas.process ? replicas.determined : replicas.wire[source].heard;
	w->synced = replicas.syncs;
	mirror_adopt(process, source);
	compare_adopt(process, source);
	words_copy(process, source);
}

/* This process is a copy: what lay between the source and others stays the source's. What it
 * provides it sends from what is kept, and receivers drop what they have. */
static void become(uint32_t process)
{
	uint32_t source = replicas.process;

	replicas.process = process;
	replicas.slot = living_slot_of(process, replicas.view.nranks);
	for (uint32_t p = 0; p < replicas.nprocesses; p++) {
		struct wire *w = &replicas.wire[p];
		kept_free(w->assembly);
		w->assembly = NULL;
		w->carries = CARRIES_NOTHING;
		w->begun = w->refused = false;
		w->next = NULL;
		mirror_loans_forget(w);
		channel_forget_all(p);
	}
	/* what the source had still to tell its mates it tells them itself, and in its order; if
	 * this one leads it tells them, too, before what it decides (determinants.c) */
	for (uint32_t s = 0; s < replicas.view.degree; s++)
		wire_forget(&replicas.wire[living_process(&replicas.view, replicas.rank, s)]);
	compare_become();
	replicas.speaks = false;
	replicas.wire[source].done = replicas.wire[process].done = false;
	replicas.wire[source].heard = replicas.determined;
	replicas.wire[source].synced = replicas.syncs;
}

/* Not that it has died since others have gone on: what it has said to them, or to us, counts as
 * with any death (view_follow). In a segment that others have used meanwhile only our view says who
 * was dead. */
static bool was_dead_before(uint32_t process)
{
	const struct link *l = link_self();

	if (process == l->process)
		return false;
	if (atomic_load(&l->mailbox->alone))
		return !replica_lives(process);
	return atomic_load(&segment_mailbox(l->segment, process)->lost) == LIVING_ABSENT;
}

void redundant_rejoin(bool fresh)
{
	const struct link *l = link_self();
	bool copy = fresh && l->process != replicas.process;

	if (!fresh)
		return;
	replicas.settled = true;
	replicas.view.audits = l->segment->audits != 0; /* hale restart may be without */
	announce_end();
	for (uint32_t p = 0; p < replicas.nprocesses; p++)
		if (was_dead_before(p) && living_lose(&replicas.view, p))
			wire_forget(&replicas.wire[p]);
	if (copy)
		become(l->process);
	for (uint32_t p = 0; p < replicas.nprocesses; p++) {
		if (was_dead_before(p) || replica_lives(p))
			continue;
		if (p != l->process)
			process_revive(p);
		replicas.view.lost[p] = 0;
		replicas.rejoined = true;
	}
	/* of deaths since then the next look at the number tells */
	if (!atomic_load(&l->mailbox->alone))
		replicas.view.number = l->segment->view_first;
	mirror_follow_view();
	determinants_follow_view(false);
}

void redundant_resume(void)
{
	replicas.suspended = false;
	for (uint32_t p = 0; p < replicas.nprocesses; p++)
		if (replicas.wire[p].first || replicas.wire[p].next)
			replica_busy(&replicas.wire[p]);
	if (replicas.settled)
		determinants_tell_anew();
	replicas.settled = false;
	if (!replicas.rejoined)
		return;
	replicas.rejoined = false;
	replicas.asked = false;
	compare_follow_view();
	for (uint32_t r = 0; r < replicas.view.nranks; r++)
		receipt_tell_anew(r);
	mirror_show_anew();
	if (replicas.leaving)
		redundant_leave();
}

bool redundant_leads(void)
{
	return replicas.leads;
}

/* ---- beginning and end ---- */

static size_t kept_max_wanted(void)
{
	const char *text = getenv("HALE_RETAIN_MAX");
	uint64_t bytes;

	if (text && units_parse_bytes(text, &bytes) && bytes > 0)
		return bytes;
	return KEPT_MAX;
}

static enum compare_mode compare_wanted(void)
{
	const char *text = getenv("HALE_SDC");

	if (!text)
		return COMPARE_OFF;
	return strcmp(text, "full") == 0 ? COMPARE_FULL : COMPARE_HASH;
}

static hale_status_t wires_make(struct error *err)
{
	uint32_t n = replicas.nprocesses;

	replicas.view.lost = heap_calloc(n, 1);
	replicas.remote = heap_calloc(replicas.view.nranks, sizeof(*replicas.remote));
	replicas.wire = heap_calloc(n, sizeof(*replicas.wire));
	if (!replicas.view.lost || !replicas.remote || !replicas.wire)
		return error_set(err, HALE_ERR_MEMORY, "no memory for %u processes", n);
	for (uint32_t p = 0; p < n; p++) {
		uint32_t how = atomic_load(&segment_mailbox(link_self()->segment, p)->lost);

		/* of deaths since others have begun the first look at the number tells: what the
		 * dead have said counts */
		replicas.wire[p].channel = channel_for(p);
		replicas.view.lost[p] =
		    how == LIVING_ABSENT || (how != 0 && !replicas.wire[p].channel);
		if (!replicas.wire[p].channel && replica_lives(p))
			return error_set(err, HALE_ERR_LINK, "no channel reaches process %u", p);
	}
	replicas.view.number = link_self()->segment->view_first;
	return HALE_OK;
}

hale_status_t redundant_open(channel_arrive_t *arrive, const struct redundant_hooks *hooks,
			     struct error *err)
{
	const struct link *l = link_self();

	replicas = (struct replicas){
	    .view = {.nranks = l->nranks,
		     .degree = l->degree,
		     .shadows = l->segment->shadows > 0,
		     .audits = l->segment->audits != 0},
	    .process = l->process,
	    .rank = l->rank,
	    .slot = living_slot_of(l->process, l->nranks),
	    .nprocesses = l->nprocesses,
	    .arrive = arrive,
	    .hooks = *hooks,
	    .kept_max = kept_max_wanted(),
	    .lend_min = LEND_MIN,
	    .compare = compare_wanted(),
	};
	hale_status_t rc = channel_open_all(receipt_arrive, err);
	if (rc != HALE_OK)
		return rc;
	rc = wires_make(err);
	if (rc != HALE_OK) {
		redundant_close();
		return rc;
	}
	redundant_on = true;
	replicas.leader = living_leader(&replicas.view, replicas.rank);
	replicas.leads = replicas.leader == (int)replicas.slot;
	mirror_follow_view();
	return HALE_OK;
}

void redundant_close(void)
{
	channel_close_all();
	for (uint32_t p = 0; replicas.wire && p < replicas.nprocesses; p++)
		wire_forget(&replicas.wire[p]);
	if (replicas.remote)
		mirror_forget();
	determinants_forget();
	blocks_forget();
	heap_free(replicas.view.lost);
	heap_free(replicas.remote);
	heap_free(replicas.wire);
	memset(&replicas, 0, sizeof(replicas));
	redundant_on = false;
}

void redundant_leave(void)
{
	struct envelope e = {.kind = REPLICA_DONE};

	replicas.leaving = true;
	for (uint32_t p = 0; p < replicas.nprocesses; p++)
		if (replicas.wire[p].done)
			words_drop(&replicas.wire[p]);
	for (uint32_t p = 0; p < replicas.nprocesses; p++)
		if (p != replicas.process && replica_lives(p))
			replica_tell(p, &e, NULL);
}

/* Nobody waits for shadows, which come much later: when all mains have ended so has the job. Nor
 * for witnesses. */
static bool must_be_done(uint32_t process)
{
	const struct living *v = &replicas.view;

	return process != replicas.process && replica_lives(process) &&
	       !living_is_witness(v, living_rank_of(process, v->nranks),
				  living_slot_of(process, v->nranks)) &&
	       (!v->shadows || redundant_is_main(process));
}

/* Its main may have died with this unsent, and the next one of that rank needs it then. A shadow
 * that nobody needs any more is ended by the head. */
static bool shadow_keeps(void)
{
	return replicas.view.shadows && redundant_is_shadow() && replicas.kept > 0;
}

bool redundant_left(void *unused)
{
	for (uint32_t p = 0; p < replicas.nprocesses; p++)
		if ((must_be_done(p) && !replicas.wire[p].done) || replicas.wire[p].lent)
			return false;
	return replicas.busy == 0 && !shadow_keeps();
}

bool redundant_is_witness(void)
{
	return living_is_witness(&replicas.view, replicas.rank, replicas.slot);
}

bool redundant_is_shadow(void)
{
	return (replicas.view.shadows && replicas.leader != (int)replicas.slot) ||
	       redundant_is_witness();
}

bool redundant_is_main(uint32_t process)
{
	const struct living *v = &replicas.view;

	return v->shadows && living_leader(v, living_rank_of(process, v->nranks)) ==
				 (int)living_slot_of(process, v->nranks);
}

uint64_t redundant_bytes_accepted(void)
{
	return replicas.accepted;
}

bool redundant_slots_are_apart(void)
{
	return redundant_on && !replicas.view.shadows && replicas.compare == COMPARE_OFF;
}
