// SPDX-License-Identifier: BSD-3-Clause
/* --sdc: no message reaches the program before all living replicas of its sender have said what it
 * is (docs/redundancy.md, "Silent errors"). Replica i sends the message to replica i of the
 * receiver, and its digest to the others (`hash`), or all send all of it to everybody (`full`).
 * A witness (docs/audit.md) is asked only when the other replicas don't agree.
 *
 *   lane.held ─▶ held 17 ─▶ held 18 ─▶ …      claim[slot]: what replica `slot` of the sender says
 *
 * The first one is judged when everybody who lives has claimed: all agree, and it is handed up; or
 * a majority does, and the others are guilty; or nobody knows which is right, and it stays. */
#include "deliver/replicas.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>
#include "ckpt/rank.h"
#include "node/proto.h"

struct digest digest_of(const void *payload, size_t length)
{
	XXH128_hash_t h = XXH3_128bits(payload, length);

	return (struct digest){h.low64, h.high64};
}

/* ---- what is sent ---- */

/* splitmix64 */
static uint64_t scatter(uint64_t z)
{
	z += 0x9e3779b97f4a7c15ull;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static void flip_injected(struct kept *k, struct mailbox *m)
{
	uint32_t every = atomic_load(&m->flip_every);
	uint64_t bit;

	if (k->envelope.length == 0 || (every > 1 && k->serial % every != 0))
		return;
	atomic_fetch_sub(&m->flips, 1);
	/* in each process another one: two that are wrong don't agree */
	bit = scatter(k->serial ^ (uint64_t)replicas.process << 40) %
	      ((uint64_t)k->envelope.length * 8);
	k->payload[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

void compare_seal(struct kept *k)
{
	struct mailbox *m = link_self()->mailbox;
	bool flips = UNLIKELY(m && atomic_load_explicit(&m->flips, memory_order_relaxed) > 0);
	bool early = flips && atomic_load_explicit(&m->flip_early, memory_order_relaxed);

	if (early)
		flip_injected(k, m);
	k->digested =
	    replicas.compare == COMPARE_HASH && living_count(&replicas.view, replicas.rank) > 1;
	if (k->digested)
		k->digest = digest_of(k->payload, k->envelope.length);
	if (flips && !early)
		flip_injected(k, m);
}

bool compare_is_needless(uint32_t rank, uint32_t context)
{
	return living_count(&replicas.view, rank) == 1 && !replica_lane(rank, context)->held;
}

/* ---- what is held ---- */

static void held_free(struct held *h)
{
	for (uint32_t s = 0; s < LIVING_DEGREE_MAX; s++)
		kept_free(h->claim[s].copy);
	heap_free(h);
}

void compare_forget(struct lane *l)
{
	while (l->held) {
		struct held *h = l->held;

		l->held = h->next;
		held_free(h);
	}
}

static _Noreturn void gap(uint32_t process, uint32_t context, uint32_t number, uint32_t have)
{
	log_warn("internal error: rank %u (replica %u) hears of message %u in context %u from "
		 "process %u, but not of the one before (it has %u); please report this",
		 replicas.rank, replicas.slot, number, context, process, have);
	link_abort(70);
}

/* That message; made where it is not there. What one replica claims it claims in order. */
static struct held *held_of(struct lane *l, uint32_t process, uint32_t context, uint32_t number)
{
	unsigned bit = 1u << living_slot_of(process, replicas.view.nranks);
	struct held **at = &l->held, *before = NULL, *h;

	while (*at && !number_reached((*at)->number, number)) {
		before = *at;
		at = &(*at)->next;
	}
	if ((before ? before->number : l->have) + 1 != number ||
	    (before && !((before->said | before->excused) & bit)))
		gap(process, context, number, l->have);
	if (*at)
		return *at;
	h = replica_memory(sizeof(*h));
	*h = (struct held){.next = NULL, .number = number};
	*at = h;
	return h;
}

/* ---- judging ---- */

static unsigned living_mask(uint32_t rank)
{
	unsigned mask = 0;

	for (uint32_t s = 0; s < replicas.view.degree; s++)
		if (living_lives(&replicas.view, rank, s))
			mask |= 1u << s;
	return mask;
}

static bool envelopes_agree(const struct claim *a, const struct claim *b)
{
	return a->length == b->length && a->source == b->source && a->tag == b->tag &&
	       a->kind == b->kind;
}

static bool claims_agree(const struct claim *a, const struct claim *b)
{
	if (!envelopes_agree(a, b))
		return false;
	if (replicas.compare == COMPARE_FULL)
		return memcmp(a->copy->payload, b->copy->payload, a->length) == 0;
	return a->digest.low == b->digest.low && a->digest.high == b->digest.high;
}

/* The slots that agree with more than half of these, which have claimed; 0: there are none. */
static unsigned majority(const struct held *h, unsigned among)
{
	for (uint32_t s = 0; s < LIVING_DEGREE_MAX; s++) {
		unsigned with = 0;

		if (!(among & 1u << s))
			continue;
		for (uint32_t t = 0; t < LIVING_DEGREE_MAX; t++)
			if ((among & 1u << t) && claims_agree(&h->claim[s], &h->claim[t]))
				with |= 1u << t;
		if (2 * __builtin_popcount(with) > __builtin_popcount(among))
			return with;
	}
	return 0;
}

/* Those whose claims count. A witness counts when the others don't agree: it begins at an earlier
 * state than its rank's other copy, and may differ from both because both are wrong. */
static unsigned jury(const struct held *h)
{
	unsigned others = h->said & ~(1u << LIVING_WITNESS);

	return replicas.view.audits && others != 0 && majority(h, others) ? others : h->said;
}

/* The slots whose claim is that of the right ones, whether it counts (jury) or not: each has a copy
 * of the message that may be handed up. */
static unsigned agreeing(const struct held *h, unsigned right)
{
	unsigned with = right;

	for (uint32_t t = 0; right && t < LIVING_DEGREE_MAX; t++)
		if ((h->said & 1u << t) &&
		    claims_agree(&h->claim[__builtin_ctz(right)], &h->claim[t]))
			with |= 1u << t;
	return with;
}

static const struct kept *copy_among(const struct held *h, unsigned slots)
{
	for (uint32_t s = 0; s < LIVING_DEGREE_MAX; s++)
		if ((slots & 1u << s) && h->claim[s].copy)
			return h->claim[s].copy;
	return NULL;
}

/* Where do two copies of the same length differ? */
static void bytes_compare(struct proto_sdc *p, const struct kept *a, const struct kept *b)
{
	uint32_t first = 0, last = a->envelope.length;

	while (first < last && a->payload[first] == b->payload[first])
		first++;
	while (last > first && a->payload[last - 1] == b->payload[last - 1])
		last--;
	p->named = last > first;
	p->first = first;
	p->last = last > first ? last - 1 : first;
}

static void difference_tell(uint32_t rank, uint32_t context, const struct held *h, unsigned right)
{
	unsigned said = jury(h);
	uint32_t one = (uint32_t)__builtin_ctz(right ? right : said);
	unsigned others = said & ~(right ? right : 1u << one);
	const struct claim *a = &h->claim[one];
	/* none: one replica alone, and its copy is not what it had claimed */
	const struct claim *b = others ? &h->claim[__builtin_ctz(others)] : a;
	const struct kept *copy = right ? copy_among(h, right) : a->copy;
	struct proto_sdc p = {.from = rank,
			      .context = context,
			      .number = h->number,
			      .length = a->length,
			      .said = said,
			      .guilty = right ? said & ~right : 0,
			      .envelope = !envelopes_agree(a, b)};

	if (copy && b->copy && copy->envelope.length == b->copy->envelope.length)
		bytes_compare(&p, copy, b->copy);
	link_sdc_tell(&p);
}

/* The provider's copy is wrong, or it is dead: those that are right have others, and are asked one
 * after the other. When none of them lives, so has who came back as a copy of one. False: all of
 * these copies are spoilt. */
static bool copy_fetch(uint32_t rank, uint32_t context, struct held *h, unsigned right)
{
	struct envelope e = {.kind = REPLICA_FETCH, .context = context, .number = h->number};
	unsigned from = right & living_mask(rank) & ~h->spoilt;

	if (from == 0)
		from = h->excused & living_mask(rank) & ~h->spoilt;
	if (from == 0)
		return false;
	if (from & h->asked)
		return true;
	from = (unsigned)__builtin_ctz(from);
	h->asked |= (unsigned char)(1u << from);
	replica_tell(living_process(&replicas.view, rank, from), &e, NULL);
	return true;
}

static bool held_give_up(uint32_t rank, uint32_t context, struct held *h)
{
	h->undecided = true;
	difference_tell(rank, context, h, 0);
	return false;
}

/* The witness computes what it has left out, and says what this message is. */
static bool witness_call(uint32_t rank, uint32_t context, struct held *h)
{
	struct envelope e = {.kind = REPLICA_SPEAK};

	if (h->called)
		return false;
	h->called = true;
	replica_tell(living_process(&replicas.view, rank, LIVING_WITNESS), &e, NULL);
	link_sdc_tell(&(struct proto_sdc){
	    .from = rank, .context = context, .number = h->number, .said = h->said, .called = 1});
	return false;
}

/* True: it has been handed up. */
static bool held_judge(uint32_t rank, uint32_t context, struct lane *l)
{
	struct held *h = l->held;
	unsigned right, missing = living_mask(rank) & ~(h->said | h->excused);
	bool witness = living_is_witness(&replicas.view, rank, LIVING_WITNESS) &&
		       (missing & 1u << LIVING_WITNESS);
	const struct kept *copy;

	if (h->undecided || (missing & ~(witness ? 1u << LIVING_WITNESS : 0)) != 0)
		return false;
	right = agreeing(h, majority(h, jury(h)));
	if (!right)
		return witness ? witness_call(rank, context, h) : held_give_up(rank, context, h);
	copy = copy_among(h, right);
	if (!copy)
		return copy_fetch(rank, context, h, right) ? false : held_give_up(rank, context, h);
	if (jury(h) & ~right)
		difference_tell(rank, context, h, right);
	l->held = h->next;
	receipt_hand_up(living_process(&replicas.view, rank, replicas.slot), copy->envelope,
			copy->payload);
	held_free(h);
	return true;
}

static void lane_judge(uint32_t rank, uint32_t context, struct lane *l)
{
	while (l->held && l->held->number == l->have + 1 && held_judge(rank, context, l))
		continue;
}

/* ---- what arrives ---- */

static struct claim *claim_add(struct held *h, uint32_t process, const struct envelope *e,
			       uint32_t length, uint32_t kind)
{
	uint32_t slot = living_slot_of(process, replicas.view.nranks);
	struct claim *c = &h->claim[slot];

	h->said |= (unsigned char)(1u << slot);
	*c = (struct claim){.length = length, .source = e->source, .tag = e->tag, .kind = kind};
	return c;
}

static bool is_late(const struct lane *l, const struct envelope *e)
{
	return number_reached(l->have, e->number);
}

/* All of a message of which only the digest was known: asked for, or since its sender has become
 * the provider. A copy that is not what that one had claimed is no better than the one before. */
static void claim_complete(struct held *h, uint32_t slot, struct kept *k)
{
	struct digest d = digest_of(k->payload, k->envelope.length);
	struct claim *c = &h->claim[slot];

	if (!c->copy && d.low == c->digest.low && d.high == c->digest.high) {
		c->copy = k;
		return;
	}
	if (!c->copy)
		h->spoilt |= (unsigned char)(1u << slot);
	kept_free(k);
}

void compare_message(uint32_t process, struct kept *k)
{
	const struct envelope *e = &k->envelope;
	uint32_t rank = living_rank_of(process, replicas.view.nranks);
	uint32_t slot = living_slot_of(process, replicas.view.nranks);
	struct lane *l = replica_lane(rank, e->context);
	uint32_t context = e->context;
	struct held *h;

	if (is_late(l, e)) {
		kept_free(k);
		return;
	}
	h = held_of(l, process, context, e->number);
	if (h->said & 1u << slot) {
		claim_complete(h, slot, k);
	} else {
		struct claim *c = claim_add(h, process, e, e->length, e->kind);

		if (replicas.compare == COMPARE_HASH)
			c->digest = digest_of(k->payload, e->length);
		c->copy = k;
	}
	lane_judge(rank, context, l);
}

void compare_digest(uint32_t process, const struct envelope *e, const struct digest_said *said)
{
	uint32_t rank = living_rank_of(process, replicas.view.nranks);
	uint32_t slot = living_slot_of(process, replicas.view.nranks);
	struct lane *l = replica_lane(rank, e->context);
	struct held *h;

	if (is_late(l, e))
		return;
	h = held_of(l, process, e->context, e->number);
	if (!(h->said & 1u << slot))
		claim_add(h, process, e, said->length, said->kind)->digest = said->digest;
	lane_judge(rank, e->context, l);
}

/* ---- views ---- */

/* All messages of that rank that are held. */
static void held_each(struct remote *r, void (*visit)(struct held *h, unsigned to, unsigned from),
		      unsigned to, unsigned from)
{
	for (uint32_t i = 0; i < ARRAY_LEN(r->lanes); i++)
		for (uint32_t k = 0; r->lanes[i] && k < LANES; k++)
			for (struct held *h = r->lanes[i][k].held; h; h = h->next)
				visit(h, to, from);
}

void compare_follow_view(void)
{
	if (replicas.compare == COMPARE_OFF)
		return;
	for (uint32_t r = 0; r < replicas.view.nranks; r++)
		for (uint32_t i = 0; i < ARRAY_LEN(replicas.remote[r].lanes); i++)
			for (uint32_t k = 0; replicas.remote[r].lanes[i] && k < LANES; k++)
				lane_judge(r, i * LANES + k, &replicas.remote[r].lanes[i][k]);
}

static void adopt(struct held *h, unsigned to, unsigned from)
{
	h->asked &= (unsigned char)~to;
	h->spoilt &= (unsigned char)~to;
	if (h->said & from)
		h->excused |= (unsigned char)to;
}

void compare_adopt(uint32_t process, uint32_t source)
{
	uint32_t nranks = replicas.view.nranks;

	held_each(&replicas.remote[living_rank_of(process, nranks)], adopt,
		  1u << living_slot_of(process, nranks), 1u << living_slot_of(source, nranks));
}

/* Unless nobody is left who could say it again. */
static void claims_drop(struct held *h, unsigned guilty, unsigned living)
{
	if ((h->said & ~guilty) == 0 && (living & ~h->excused & ~guilty) == 0)
		return;
	h->said &= (unsigned char)~guilty;
	h->undecided = false;
	for (uint32_t s = 0; s < LIVING_DEGREE_MAX; s++) {
		if (!(guilty & 1u << s))
			continue;
		kept_free(h->claim[s].copy);
		h->claim[s].copy = NULL;
	}
}

void compare_discredit(uint32_t process)
{
	uint32_t rank = living_rank_of(process, replicas.view.nranks);

	held_each(&replicas.remote[rank], claims_drop,
		  1u << living_slot_of(process, replicas.view.nranks), living_mask(rank));
}

static void ask_anew(struct held *h, unsigned to, unsigned from)
{
	h->asked = 0;
}

void compare_become(void)
{
	for (uint32_t r = 0; r < replicas.view.nranks; r++)
		held_each(&replicas.remote[r], ask_anew, 0, 0);
}
