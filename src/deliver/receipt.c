// SPDX-License-Identifier: BSD-3-Clause
/* The receiving side of the policy `redundant`. It turns records of processes into messages of
 * ranks, each once and in order. It acknowledges them to the processes that keep copies for this
 * one. */
#include "deliver/replicas.h"

#include <string.h>
#include "ckpt/rank.h"

enum {
	TELL_MESSAGES = 32,
	TELL_BYTES = 64 << 10,
	/* A provider knows by itself, but compares numbers of 32 bits with what it was told last.
	 */
	TELL_PROVIDER = 1 << 20,
};

/* ---- acknowledgements ---- */

static void lane_tell(uint32_t rank, uint32_t context, struct lane *l)
{
	struct envelope e = {.kind = REPLICA_HAVE, .context = context, .number = l->have};
	int provider = living_provider(&replicas.view, rank, replicas.slot);
	bool long_ago = l->told / TELL_PROVIDER != l->have / TELL_PROVIDER;

	l->told = l->have;
	l->bytes = 0;
	/* who announces a copy keeps what it provides, too */
	if (provider != LIVING_NONE && UNLIKELY(long_ago || announce_concerns(rank)))
		replica_tell(living_process(&replicas.view, rank, (uint32_t)provider), &e, NULL);
	for (uint32_t s = 0; s < replicas.view.degree; s++)
		if ((int)s != provider && living_lives(&replicas.view, rank, s))
			replica_tell(living_process(&replicas.view, rank, s), &e, NULL);
}

void receipt_tell_all(uint32_t rank)
{
	struct remote *from = &replicas.remote[rank];

	for (uint32_t i = 0; i < ARRAY_LEN(from->lanes); i++)
		for (uint32_t k = 0; from->lanes[i] && k < LANES; k++)
			if (from->lanes[i][k].told != from->lanes[i][k].have)
				lane_tell(rank, i * LANES + k, &from->lanes[i][k]);
}

void receipt_tell_anew(uint32_t rank)
{
	struct remote *from = &replicas.remote[rank];

	for (uint32_t i = 0; i < ARRAY_LEN(from->lanes); i++)
		for (uint32_t k = 0; from->lanes[i] && k < LANES; k++)
			if (from->lanes[i][k].have != 0)
				lane_tell(rank, i * LANES + k, &from->lanes[i][k]);
}

static void redundant_accepted(struct ledger *ledger, uint32_t from, const struct envelope *e,
			       const void *payload)
{
	if (from == replicas.rank)
		return;
	struct remote *r = &replicas.remote[from];
	struct lane *l = replica_lane(from, e->context);

	l->have = (uint32_t)ledger->have;
	l->bytes += e->length;
	replicas.accepted += e->length;
	if (LIKELY(l->have - l->told < TELL_MESSAGES && l->bytes < TELL_BYTES && !r->urgent))
		return;
	r->urgent -= r->urgent > 0;
	lane_tell(from, e->context, l);
}

/* A copy of a message that is here already: of two providers, one of which has taken the other's
 * place. Nothing is ever skipped, since a provider begins with what it was told last. */
static bool redundant_other(struct ledger *ledger, uint32_t from, const struct envelope *e,
			    const void *payload, int32_t distance)
{
	if (distance < 0)
		return false;
	log_warn(
	    "internal error: rank %u (replica %u) got message %u from rank %u in context %u (tag "
	    "%d) instead of message %u; please report this",
	    replicas.rank, replicas.slot, e->number, from, e->context, e->tag,
	    (uint32_t)ledger->have + 1);
	link_abort(70);
}

const struct deliver_ops deliver_redundant = {
    .name = "redundant",
    .accepted = redundant_accepted,
    .other = redundant_other,
};

/* ---- messages ---- */

/* The sender's request means nothing here: each replica of the sender has another one. The
 * message's name does. */
void receipt_hand_up(uint32_t process, struct envelope e, const void *payload)
{
	if (e.kind == RECORD_SYNC)
		e.id = (uint64_t)e.context << 32 | e.number;
	replicas.arrive(living_rank_of(process, replicas.view.nranks), &e, payload);
}

static bool is_taken_as_it_is(uint32_t process, const struct envelope *e)
{
	return replicas.compare == COMPARE_OFF ||
	       compare_is_needless(living_rank_of(process, replicas.view.nranks), e->context);
}

static void message_up(uint32_t process, const struct envelope *e, const void *payload)
{
	struct kept *k;

	if (LIKELY(is_taken_as_it_is(process, e))) {
		receipt_hand_up(process, *e, payload);
		return;
	}
	k = kept_alloc(e->length);
	k->envelope = *e;
	if (e->length)
		memcpy(k->payload, payload, e->length);
	compare_message(process, k);
}

void receipt_matched(uint32_t rank, uint64_t id)
{
	struct envelope e = {
	    .kind = REPLICA_MATCHED, .context = (uint32_t)(id >> 32), .number = (uint32_t)id};

	if (rank == replicas.rank) { /* to ourselves it is the request */
		struct envelope ack = {.kind = RECORD_ACK, .id = id};
		replicas.arrive(rank, &ack, NULL);
		return;
	}
	for (uint32_t s = 0; s < replicas.view.degree; s++) {
		uint32_t p = living_process(&replicas.view, rank, s);

		if (replica_lives(p) || replicas.wire[p].coming)
			replica_tell(p, &e, NULL);
	}
}

/* A message whose parts are here goes up. Takes over k. */
static void assembly_up(uint32_t process, struct kept *k)
{
	if (!is_taken_as_it_is(process, &k->envelope)) {
		compare_message(process, k);
		return;
	}
	receipt_hand_up(process, k->envelope, k->payload);
	kept_free(k);
}

static bool loan_copy(uint32_t process, uint64_t address, struct kept *k)
{
	const struct channel_ops *c = replicas.wire[process].channel;
	size_t done = 0, length = k->envelope.length;

	if (!c->get || !c->put)
		return false;
	while (done < length) {
		struct iovec to = {k->payload + done, length - done};
		struct iovec from = {(void *)(uintptr_t)(address + done), length - done};
		ssize_t n = c->get(process, &to, 1, &from, 1, true);
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* Where copies are compared nothing leaves behind a loan. */
static void loan_refuse(uint32_t process, struct kept *k)
{
	struct wire *w = &replicas.wire[process];

	w->refused = replicas.compare == COMPARE_OFF;
	w->refused_context = k->envelope.context;
	w->refused_number = k->envelope.number;
	kept_free(k);
}

/* It is copied at once: whatever comes behind it may mean that it is there. A process that needs no
 * more messages has said so, which ends the loan: the sender may have left, and would hear no more.
 */
static void loan_take(uint32_t process, struct kept *k, const struct big *big)
{
	struct envelope e = {.kind = REPLICA_TAKEN, .number = big->loan};

	if (replicas.leaving) {
		kept_free(k);
		return;
	}
	e.id = loan_copy(process, big->address, k);
	replica_tell(process, &e, NULL);
	if (e.id)
		assembly_up(process, k);
	else
		loan_refuse(process, k);
}

/* A wire's loan was refused: until its sender begins again with that message, those behind it in
 * its context are not what is to come next. */
static bool is_behind_refused(uint32_t process, const struct envelope *e)
{
	struct wire *w = &replicas.wire[process];
	uint32_t rank = living_rank_of(process, replicas.view.nranks);

	return UNLIKELY(w->refused) &&
	       !number_reached(replica_lane(rank, e->context)->have + 1, e->number);
}

static void assembly_begin(uint32_t process, const struct envelope *e, const void *payload)
{
	struct wire *w = &replicas.wire[process];
	struct kept *k;
	struct big big;

	memcpy(&big, payload, sizeof(big));
	kept_free(w->assembly);
	w->assembly = NULL;
	if (is_behind_refused(process, e))
		return;
	k = kept_alloc(big.length);
	k->envelope = *e;
	k->envelope.kind = (uint8_t)big.kind;
	k->envelope.length = big.length;
	if (big.address) {
		loan_take(process, k, &big);
		return;
	}
	w->refused =
	    w->refused && (e->context != w->refused_context || e->number != w->refused_number);
	w->assembly = k;
	w->assembled = 0;
}

static void assembly_add(uint32_t process, const struct envelope *e, const void *payload)
{
	struct wire *w = &replicas.wire[process];
	struct kept *k = w->assembly;

	if (!k && w->refused)
		return;
	if (!k || e->length > k->envelope.length - w->assembled) {
		log_warn("internal error: rank %u got a part of no message from process %u; please "
			 "report this",
			 replicas.rank, process);
		link_abort(70);
	}
	memcpy(k->payload + w->assembled, payload, e->length);
	w->assembled += e->length;
	if (w->assembled < k->envelope.length)
		return;
	w->assembly = NULL;
	assembly_up(process, k);
}

void receipt_arrive(uint32_t process, const struct envelope *e, const void *payload)
{
	uint32_t rank = living_rank_of(process, replicas.view.nranks);

	/* one that comes may have heard of the view before us */
	if (UNLIKELY(!replica_lives(process)) && !replicas.wire[process].coming)
		return;
	switch (e->kind) {
	case RECORD_EAGER:
	case RECORD_SYNC:
		if (LIKELY(!is_behind_refused(process, e)))
			message_up(process, e, payload);
		return;
	case REPLICA_BIG:
		assembly_begin(process, e, payload);
		return;
	case REPLICA_PART:
		assembly_add(process, e, payload);
		return;
	case REPLICA_HAVE:
		mirror_acked(process, e->context, e->number);
		return;
	case REPLICA_MATCHED:
		mirror_matched(rank, e->context, e->number);
		return;
	case REPLICA_SENT:
		mirror_shown((uint32_t)e->id, e->context, e->number);
		return;
	case REPLICA_ASK:
		if (rank == replicas.rank) {
			mirror_show();
			return;
		}
		replicas.remote[rank].urgent = REPLICA_URGENT;
		receipt_tell_all(rank);
		return;
	case REPLICA_DONE:
		replica_done(process);
		return;
	case REPLICA_DETERMINANT:
		determinant_arrive(process, e, payload);
		return;
	case REPLICA_DIGEST: {
		struct digest_said said;
		memcpy(&said, payload, sizeof(said));
		compare_digest(process, e, &said);
		return;
	}
	case REPLICA_FETCH:
		mirror_fetch(process, e->context, e->number);
		return;
	case REPLICA_COMES:
	case REPLICA_KEEPS:
	case REPLICA_COMES_NOT:
		announce_heard(process, e);
		return;
	case REPLICA_SPEAK:
		replicas.speaks = true;
		return;
	case REPLICA_TAKEN:
		mirror_taken(process, e->number, e->id == 1);
		return;
	case REPLICA_HEARD:
		determinant_heard(process, e->number);
		return;
	case REPLICA_SYNCED:
		determinants_synced(process, e->number);
		return;
	default: /* the channels' own, and what nobody knows */
		replicas.arrive(process, e, payload);
		return;
	}
}
