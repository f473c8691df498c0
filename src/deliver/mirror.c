// SPDX-License-Identifier: BSD-3-Clause
/* The sending side of protocol `mirror`: replica i of a rank sends to replica i of another one, and
 * keeps for the other replicas what they may have to be sent when their own provider dies. */
#include "deliver/replicas.h"

#include <string.h>
#include "ckpt/rank.h"

enum {
	MESSAGE_MAX = 1 << 30,
	LOANS = 64,	/* of one wire at a time: half of the records that a ring has */
	LEND_LATE = 12, /* shadows are lent messages from so many times shorter ones on */
};
static const size_t eager_max = MESSAGE_MAX;

/* ---- what is kept ---- */

static bool wire_has_sent(const struct wire *w, const struct kept *k)
{
	return !w->next || w->next->serial > k->serial;
}

/* What is behind a loan may have to be sent again. */
static bool wire_has_passed(const struct wire *w, const struct kept *k)
{
	return wire_has_sent(w, k) && (!w->lent || w->lent->serial > k->serial);
}

static bool kept_is_needed(uint32_t rank, const struct kept *k)
{
	const struct envelope *e = &k->envelope;
	const struct lane *l = replica_lane(rank, e->context);

	for (uint32_t s = 0; s < replicas.view.degree; s++) {
		const struct wire *w = &replicas.wire[living_process(&replicas.view, rank, s)];
		if ((!living_lives(&replicas.view, rank, s) && !w->coming) || w->done)
			continue;
		if (w->carries != CARRIES_NOTHING && !wire_has_passed(w, k))
			return true;
		if ((w->carries != CARRIES_MESSAGES || UNLIKELY(replicas.announces)) &&
		    !number_reached(l->acked[s], e->number))
			return true;
	}
	return false;
}

static size_t kept_bytes(const struct kept *k)
{
	return sizeof(*k) + k->envelope.length;
}

static void kept_drop(struct remote *to, struct kept *k)
{
	if (k->prev)
		k->prev->next = k->next;
	else
		to->first = k->next;
	if (k->next)
		k->next->prev = k->prev;
	else
		to->last = k->prev;
	replicas.kept -= kept_bytes(k);
	kept_free(k);
}

void mirror_trim(uint32_t rank)
{
	struct remote *to = &replicas.remote[rank];
	for (struct kept *k = to->first, *next; k; k = next) {
		next = k->next;
		if (!kept_is_needed(rank, k))
			kept_drop(to, k);
	}
}

/* The same for messages up to that one: those behind it need not be looked at, and may be many. */
static void lane_trim(uint32_t rank, uint32_t context, uint32_t number)
{
	struct remote *to = &replicas.remote[rank];

	for (struct kept *k = to->first, *next; k; k = next) {
		next = k->next;
		if (k->envelope.context != context)
			continue;
		if (!number_reached(number, k->envelope.number))
			return;
		if (!kept_is_needed(rank, k))
			kept_drop(to, k);
	}
}

void mirror_acked(uint32_t process, uint32_t context, uint32_t number)
{
	uint32_t rank = living_rank_of(process, replicas.view.nranks);
	uint32_t slot = living_slot_of(process, replicas.view.nranks);
	struct lane *l = replica_lane(rank, context);

	replicas.asked = false;
	if (number_reached(l->acked[slot], number))
		return;
	l->acked[slot] = number;
	lane_trim(rank, context, number);
}

/* ---- transmission ---- */

/* Parts need a turn of each side for every few of them; a loan is one copy, at any time. Channels
 * with `put` copy in the call of `get`. A shadow looks seldom: without loans its ring would be full
 * before, and wake it. */
static bool wire_may_lend(const struct wire *w, const struct kept *k)
{
	uint32_t min = w->late ? replicas.lend_min / LEND_LATE : replicas.lend_min;

	return !w->parts && w->channel->get && w->channel->put && k->envelope.length > min;
}

static bool big_send(struct wire *w, uint32_t process, const struct kept *k, uint32_t loan)
{
	struct big big = {.length = k->envelope.length, .kind = k->envelope.kind, .loan = loan};
	struct envelope e = k->envelope;

	if (loan)
		big.address = (uintptr_t)k->payload;
	e.kind = REPLICA_BIG;
	e.length = sizeof(big);
	return w->channel->send(process, &e, &big);
}

/* Copies that are compared come one by one: there a gap would be something else. */
static uint32_t loans_max(void)
{
	return replicas.compare == COMPARE_OFF ? LOANS : 1;
}

/* A shadow that dozes would answer only when it wakes by itself. */
static bool loans_are_out(struct wire *w, uint32_t process)
{
	if (w->nlent < loans_max())
		return false;
	if (w->channel->hurry)
		w->channel->hurry(process);
	return true;
}

static bool lend(struct wire *w, uint32_t process, struct kept *k)
{
	uint32_t loan = replicas.loans + 1 ? replicas.loans + 1 : 1;

	if (loans_are_out(w, process) || !big_send(w, process, k, loan))
		return false;
	replicas.loans = loan;
	k->loan[living_slot_of(process, replicas.view.nranks)] = loan;
	if (w->nlent++ == 0)
		w->lent = k;
	return true;
}

void mirror_loans_forget(struct wire *w)
{
	w->lent = NULL;
	w->nlent = 0;
}

/* The first loan of that wire is over, and so is what has left behind it. */
static void loan_end(struct wire *w, uint32_t rank, uint32_t slot)
{
	struct kept *k = w->lent, *first, *next;

	if (--w->nlent == 0)
		mirror_loans_forget(w);
	else
		for (w->lent = k->next; !w->lent->loan[slot];)
			w->lent = w->lent->next;
	for (first = w->lent ? w->lent : w->next; k != first; k = next) {
		next = k->next;
		if (!kept_is_needed(rank, k))
			kept_drop(&replicas.remote[rank], k);
	}
}

void mirror_taken(uint32_t process, uint32_t loan, bool copied)
{
	struct wire *w = &replicas.wire[process];
	uint32_t slot = living_slot_of(process, replicas.view.nranks);

	if (!w->lent || w->lent->loan[slot] != loan)
		return; /* of a loan that a change of view, or a refusal, has ended */
	if (copied) {
		loan_end(w, living_rank_of(process, replicas.view.nranks), slot);
		return;
	}
	w->next = w->lent;
	w->parts = true;
	w->begun = false;
	mirror_loans_forget(w);
	replica_busy(w);
}

static bool parts_send(struct wire *w, uint32_t process, const struct kept *k)
{
	uint32_t max = (uint32_t)*w->channel->eager_max;

	if (!w->begun) {
		if (!big_send(w, process, k, 0))
			return false;
		w->begun = true;
		w->offset = 0;
	}
	while (w->offset < k->envelope.length) {
		uint32_t n = k->envelope.length - w->offset;
		struct envelope e = {.kind = REPLICA_PART, .length = n < max ? n : max};
		if (!w->channel->send(process, &e, k->payload + w->offset))
			return false;
		w->offset += e.length;
	}
	w->begun = false;
	return true;
}

static bool wire_skips(uint32_t rank, uint32_t slot, const struct wire *w)
{
	const struct envelope *e = &w->next->envelope;

	return !w->begun && number_reached(replica_lane(rank, e->context)->acked[slot], e->number);
}

static bool digest_send(struct wire *w, uint32_t process, struct kept *k)
{
	if (UNLIKELY(!k->digested)) { /* of when this process was alone */
		k->digest = digest_of(k->payload, k->envelope.length);
		k->digested = true;
	}
	struct digest_said said = {k->digest, k->envelope.length, k->envelope.kind};
	struct envelope e = k->envelope;

	e.kind = REPLICA_DIGEST;
	e.length = sizeof(said);
	return w->channel->send(process, &e, &said);
}

static bool kept_send(struct wire *w, uint32_t process, struct kept *k)
{
	uint32_t slot = living_slot_of(process, replicas.view.nranks);

	k->loan[slot] = 0;
	if (UNLIKELY(replicas.compare != COMPARE_OFF) && w->lent)
		return false;
	if (UNLIKELY(w->carries == CARRIES_DIGESTS) && !(k->full & 1u << slot))
		return digest_send(w, process, k);
	if (!w->begun && wire_may_lend(w, k))
		return lend(w, process, k);
	/* one that was begun before a restart on other nodes goes on as it was begun, even where a
	 * record has room for all of it now */
	if (!w->begun && k->envelope.length <= *w->channel->eager_max)
		return w->channel->send(process, &k->envelope, k->payload);
	return parts_send(w, process, k);
}

int mirror_push(uint32_t process)
{
	struct wire *w = &replicas.wire[process];
	uint32_t rank = living_rank_of(process, replicas.view.nranks);
	uint32_t slot = living_slot_of(process, replicas.view.nranks);
	int sent = 0;

	if (UNLIKELY(replicas.suspended)) {
		if (w->next)
			replica_busy(w);
		return 0;
	}
	while (w->next) {
		struct kept *k = w->next;
		if (wire_skips(rank, slot, w)) {
			k->loan[slot] = 0;
		} else if (!kept_send(w, process, k)) {
			replica_busy(w);
			return sent;
		}
		sent++;
		w->next = k->next;
		if (!kept_is_needed(rank, k))
			kept_drop(&replicas.remote[rank], k);
	}
	return sent;
}

/* ---- the channel that match/ sees ---- */

/* No more memory for what others may need: those who have not said what they have are asked. */
static void ask_everybody(void)
{
	struct envelope e = {.kind = REPLICA_ASK};

	if (replicas.asked)
		return;
	replicas.asked = true;
	for (uint32_t p = 0; p < replicas.nprocesses; p++)
		if (p != replicas.process && replica_lives(p) &&
		    (replicas.wire[p].carries != CARRIES_MESSAGES || replicas.announces))
			replica_tell(p, &e, NULL);
}

/* A witness computes no further than to its first message that not all others have, unless it has
 * been told to speak, or has so much to catch up with that it is done meanwhile. */
static bool is_held_back(void)
{
	return redundant_is_witness() && !replicas.speaks && !replicas.hooks.is_late();
}

/* Has another replica of this rank sent that message? Without this, two replicas at their bounds
 * would wait for each other, each with messages that the other one has not sent. A process keeps as
 * much beyond its bound at most as its mates keep within theirs. */
static bool another_has_sent(uint32_t rank, const struct envelope *e)
{
	return number_reached(replica_lane(rank, e->context)->mate_sent, e->number);
}

static void lane_show(uint32_t rank, uint32_t context, struct lane *l)
{
	struct envelope e = {
	    .kind = REPLICA_SENT, .context = context, .number = l->sent, .id = rank};

	l->shown = l->sent;
	for (uint32_t s = 0; s < replicas.view.degree; s++)
		if (s != replicas.slot && living_lives(&replicas.view, replicas.rank, s))
			replica_tell(living_process(&replicas.view, replicas.rank, s), &e, NULL);
}

/* mate_sent never falls behind, so numbers of 32 bits can be compared after any time. */
static void lane_advance(uint32_t rank, const struct envelope *e)
{
	struct lane *l = replica_lane(rank, e->context);

	l->sent = e->number;
	if (!number_reached(l->mate_sent, l->sent))
		l->mate_sent = l->sent;
	if (LIKELY(replicas.mate_waits == 0))
		return;
	replicas.mate_waits--;
	lane_show(rank, e->context, l);
}

static void lanes_each(void (*what)(uint32_t rank, uint32_t context, struct lane *l))
{
	for (uint32_t r = 0; r < replicas.view.nranks; r++) {
		struct remote *to = &replicas.remote[r];
		for (uint32_t i = 0; i < ARRAY_LEN(to->lanes); i++)
			for (uint32_t k = 0; to->lanes[i] && k < LANES; k++)
				what(r, i * LANES + k, &to->lanes[i][k]);
	}
}

static void lane_show_new(uint32_t rank, uint32_t context, struct lane *l)
{
	if (l->shown != l->sent)
		lane_show(rank, context, l);
}

static void lane_hide(uint32_t rank, uint32_t context, struct lane *l)
{
	l->shown = 0;
}

void mirror_show(void)
{
	replicas.mate_waits = REPLICA_URGENT;
	lanes_each(lane_show_new);
}

void mirror_show_anew(void)
{
	lanes_each(lane_hide);
}

void mirror_shown(uint32_t rank, uint32_t context, uint32_t number)
{
	struct lane *l = replica_lane(rank, context);

	replicas.asked = false;
	if (!number_reached(l->mate_sent, number))
		l->mate_sent = number;
}

static bool may_leave(uint32_t rank, const struct envelope *e)
{
	if (UNLIKELY(replicas.view.audits) && is_held_back())
		return false;
	replicas.hooks.output();
	if (UNLIKELY(!determinants_are_safe()))
		return false;
	if (LIKELY(replicas.kept + e->length <= replicas.kept_max || replicas.kept == 0) ||
	    another_has_sent(rank, e))
		return true;
	ask_everybody();
	return false;
}

static struct kept *kept_make(size_t length)
{
	struct kept *k = kept_alloc(length);

	k->full = 0;
	return k;
}

static void sync_note(struct remote *to, const struct envelope *e)
{
	for (struct sync **at = &to->syncs; *at; at = &(*at)->next) {
		struct sync *s = *at;
		if (s->context != e->context || s->number != e->number)
			continue;
		/* a replica that is ahead of us has seen to it that it was matched */
		struct envelope ack = {.kind = RECORD_ACK, .id = e->id};
		*at = s->next;
		heap_free(s);
		replicas.arrive((uint32_t)(to - replicas.remote), &ack, NULL);
		return;
	}
	struct sync *s = replica_memory(sizeof(*s));
	*s = (struct sync){to->syncs, e->context, e->number, e->id};
	to->syncs = s;
}

void mirror_matched(uint32_t rank, uint32_t context, uint32_t number)
{
	struct remote *to = &replicas.remote[rank];

	for (struct sync **at = &to->syncs; *at; at = &(*at)->next) {
		struct sync *s = *at;
		if (s->context != context || s->number != number)
			continue;
		struct envelope ack = {.kind = RECORD_ACK, .id = s->request};
		if (!s->request)
			return;
		*at = s->next;
		heap_free(s);
		replicas.arrive(rank, &ack, NULL);
		return;
	}
	if (number_reached(replica_lane(rank, context)->sent, number))
		return; /* another replica has said so before */
	struct sync *s = replica_memory(sizeof(*s));
	*s = (struct sync){to->syncs, context, number, 0};
	to->syncs = s;
}

static void kept_append(uint32_t rank, struct kept *k)
{
	struct remote *to = &replicas.remote[rank];
	uint32_t carried[LIVING_DEGREE_MAX], n = 0;

	k->serial = ++replicas.serial;
	compare_seal(k);
	lane_advance(rank, &k->envelope);
	k->next = NULL;
	k->prev = to->last;
	if (to->last)
		to->last->next = k;
	else
		to->first = k;
	to->last = k;
	replicas.kept += kept_bytes(k);
	for (uint32_t s = 0; s < replicas.view.degree; s++) {
		uint32_t p = living_process(&replicas.view, rank, s);
		struct wire *w = &replicas.wire[p];
		if (w->carries == CARRIES_NOTHING || !replica_lives(p))
			continue;
		if (!w->next)
			w->next = k;
		carried[n++] = p;
	}
	if (k->envelope.kind == RECORD_SYNC)
		sync_note(to, &k->envelope);
	if (n == 0 && !kept_is_needed(rank, k))
		kept_drop(to, k);
	for (uint32_t i = 0; i < n; i++)
		if (!replicas.wire[carried[i]].busy)
			mirror_push(carried[i]);
}

/* Records of match/ that are not messages: an acknowledgement goes to all replicas that wait for
 * it; a cancel comes too late, always; pressure has no meaning here. */
static bool control_send(uint32_t rank, const struct envelope *e)
{
	if (e->kind == RECORD_ACK) {
		receipt_matched(rank, e->id);
	} else if (e->kind == RECORD_CANCEL) {
		struct envelope late = {.kind = RECORD_CANCELLED, .id = e->id};
		replicas.arrive(rank, &late, NULL);
	} else if (e->kind != RECORD_PRESSURE && e->kind != RECORD_CANCELLED) {
		log_warn(
		    "rank %u sends a message of more than 1 GiB, which jobs with replicas don't "
		    "carry: send it in pieces, or run without --replicas",
		    replicas.rank);
		link_abort(70);
	}
	return true;
}

/* A shadow, or a witness, sends what others have sent before; once it is promoted, too, until it
 * has caught up. Acknowledgements never say too much, so what all have they get from nobody. */
static bool is_skipped(uint32_t rank, const struct envelope *e)
{
	struct lane *l = replica_lane(rank, e->context);

	for (uint32_t s = 0; s < replicas.view.degree; s++)
		if ((living_lives(&replicas.view, rank, s) ||
		     replicas.wire[living_process(&replicas.view, rank, s)].coming) &&
		    !number_reached(l->acked[s], e->number) &&
		    !replicas.wire[living_process(&replicas.view, rank, s)].done)
			return false;
	lane_advance(rank, e);
	if (e->kind == RECORD_SYNC)
		sync_note(&replicas.remote[rank], e);
	return true;
}

static bool is_behind(void)
{
	return replicas.view.shadows || (replicas.view.audits && replicas.slot == LIVING_WITNESS);
}

static bool mirror_send(uint32_t rank, const struct envelope *e, const void *payload)
{
	if (UNLIKELY(e->kind > RECORD_SYNC))
		return control_send(rank, e);
	if (rank == replicas.rank) {
		replicas.arrive(rank, e, payload);
		return true;
	}
	if (is_behind() && is_skipped(rank, e))
		return true;
	if (!may_leave(rank, e))
		return false;
	struct kept *k = kept_make(e->length);
	k->envelope = *e;
	if (e->length)
		memcpy(k->payload, payload, e->length);
	kept_append(rank, k);
	return true;
}

static void *mirror_reserve(uint32_t rank, const struct envelope *e)
{
	struct remote *to = &replicas.remote[rank];

	if (rank != replicas.rank && !may_leave(rank, e))
		return NULL;
	kept_free(to->reserved);
	to->reserved = kept_make(e->length);
	return to->reserved->payload;
}

static void mirror_commit(uint32_t rank, const struct envelope *e)
{
	struct kept *k = replicas.remote[rank].reserved;

	replicas.remote[rank].reserved = NULL;
	k->envelope = *e;
	if (rank != replicas.rank) {
		kept_append(rank, k);
		return;
	}
	replicas.arrive(rank, e, k->payload);
	kept_free(k);
}

/* ---- view ---- */

static enum carries carries_for(uint32_t process)
{
	const struct living *v = &replicas.view;
	uint32_t slot = living_slot_of(process, v->nranks);

	if (!replica_lives(process) || replicas.wire[process].done ||
	    living_rank_of(process, v->nranks) == replicas.rank)
		return CARRIES_NOTHING;
	if (replicas.compare == COMPARE_FULL ||
	    living_provider(v, replicas.rank, slot) == (int)replicas.slot)
		return CARRIES_MESSAGES;
	return replicas.compare == COMPARE_HASH ? CARRIES_DIGESTS : CARRIES_NOTHING;
}

void mirror_follow_view(void)
{
	for (uint32_t p = 0; p < replicas.nprocesses; p++) {
		struct wire *w = &replicas.wire[p];
		enum carries carries = carries_for(p);

		if (carries > w->carries)
			w->next = replicas.remote[living_rank_of(p, replicas.view.nranks)].first;
		if (carries != w->carries) {
			/* a loan that is refused, or not heard of any more: its digest is due */
			if (w->lent && carries == CARRIES_DIGESTS)
				w->next = w->lent;
			w->begun = false;
			mirror_loans_forget(w);
		}
		if (carries == CARRIES_NOTHING)
			w->next = NULL;
		w->carries = carries;
		w->late = replicas.view.shadows && !redundant_is_main(p);
		if (w->next)
			replica_busy(w);
	}
	for (uint32_t r = 0; r < replicas.view.nranks; r++)
		mirror_trim(r);
}

/* Nothing is lost when it is not kept any more: then that process has the message by now. */
void mirror_fetch(uint32_t process, uint32_t context, uint32_t number)
{
	uint32_t rank = living_rank_of(process, replicas.view.nranks);
	struct wire *w = &replicas.wire[process];
	struct kept *k = replicas.remote[rank].first;

	while (k && (k->envelope.context != context || k->envelope.number != number))
		k = k->next;
	if (!k || w->carries == CARRIES_NOTHING)
		return;
	k->full |= 1u << living_slot_of(process, replicas.view.nranks);
	if (wire_has_sent(w, k)) {
		w->next = k;
		w->begun = false;
		mirror_loans_forget(w);
	}
	replica_busy(w);
}

/* What its source had of ours is a bound below: what that one has got since is dropped there. */
void mirror_adopt(uint32_t process, uint32_t source)
{
	uint32_t rank = living_rank_of(process, replicas.view.nranks);
	uint32_t to = living_slot_of(process, replicas.view.nranks);
	uint32_t from = living_slot_of(source, replicas.view.nranks);
	struct remote *r = &replicas.remote[rank];

	for (uint32_t i = 0; i < ARRAY_LEN(r->lanes); i++)
		for (uint32_t k = 0; r->lanes[i] && k < LANES; k++)
			r->lanes[i][k].acked[to] = r->lanes[i][k].acked[from];
}

void mirror_forget(void)
{
	for (uint32_t r = 0; r < replicas.view.nranks; r++) {
		struct remote *to = &replicas.remote[r];
		while (to->first)
			kept_drop(to, to->first);
		for (struct sync *s = to->syncs, *next; s; s = next) {
			next = s->next;
			heap_free(s);
		}
		kept_free(to->reserved);
		for (size_t i = 0; i < ARRAY_LEN(to->lanes); i++) {
			for (uint32_t k = 0; to->lanes[i] && k < LANES; k++)
				compare_forget(&to->lanes[i][k]);
			heap_free(to->lanes[i]);
		}
	}
}

/* Opened, polled and closed as what it stands on: redundant_open and so on. */
static hale_status_t mirror_open(channel_arrive_t *arrive, struct error *err)
{
	return HALE_OK;
}

static bool mirror_reaches(uint32_t rank)
{
	return rank < replicas.view.nranks;
}

static void mirror_close(void)
{
}

const struct channel_ops channel_redundant = {
    .name = "redundant",
    .open = mirror_open,
    .reaches = mirror_reaches,
    .send = mirror_send,
    .reserve = mirror_reserve,
    .commit = mirror_commit,
    .close = mirror_close,
    .eager_max = &eager_max,
};
