/* SPDX-License-Identifier: BSD-3-Clause */
/* Context ids: which are free, the rules of agreement, and agreement by a collective. */
#include <string.h>
#include "mpi/comm/context.h"

#include "base/yield.h"

static uint64_t free_ids[2][CONTEXT_HALF_WORDS]; /* eager half first; bit set: free */
static struct context_ticket *owner[2];
static struct context_ticket *tickets;

void context_init(void)
{
	memset(free_ids, 0xff, sizeof(free_ids));
	owner[0] = owner[1] = NULL;
	tickets = NULL;
}

static uint64_t *word_of(uint32_t context, uint64_t *bit)
{
	uint32_t id = context / COMM_CONTEXTS;
	*bit = 1ull << (id % 64);
	return &free_ids[id / (CONTEXT_IDS / 2)][id % (CONTEXT_IDS / 2) / 64];
}

void context_reserve(uint32_t context)
{
	uint64_t bit, *word = word_of(context, &bit);
	*word &= ~bit;
}

void context_release(uint32_t context)
{
	uint64_t bit, *word = word_of(context, &bit);
	*word |= bit;
}

uint64_t context_bridge_key(uint32_t a, uint32_t b)
{
	return a < b ? context_key(a, KEY_BRIDGE, b) : context_key(b, KEY_BRIDGE, a);
}

void context_ticket_open(struct context_ticket *t, uint64_t key, int want)
{
	t->want = want;
	t->key = key;
	t->round = 0;
	t->owner = false;
	t->next = tickets;
	tickets = t;
}

void context_ticket_close(struct context_ticket *t)
{
	struct context_ticket **at = &tickets;
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
}

static bool may_own(const struct context_ticket *t, int half)
{
	if (owner[half])
		return false;
	if (half == 0)
		return true;
	for (const struct context_ticket *o = tickets; o; o = o->next)
		if (o->round > 0 && o->key < t->key)
			return false;
	return true;
}

void context_ticket_offer(struct context_ticket *t)
{
	int half = t->round > 0;
	t->owner = may_own(t, half);
	memset(t->words, 0, sizeof(t->words));
	if (!t->owner)
		return;
	owner[half] = t;
	memcpy(t->words, free_ids[half], sizeof(free_ids[half]));
	t->words[CONTEXT_HALF_WORDS] = ~0ull;
}

/* The lowest ids of the result; false when there are too few. */
static bool take_lowest(struct context_ticket *t, int half)
{
	int found = 0;
	for (int i = 0; i < CONTEXT_HALF_WORDS; i++) {
		for (uint64_t w = t->words[i]; w && found < t->want; w &= w - 1) {
			uint32_t id =
			    (uint32_t)(i * 64 + __builtin_ctzll(w) + half * (CONTEXT_IDS / 2));
			t->contexts[found++] = id * COMM_CONTEXTS;
		}
	}
	if (found < t->want)
		return false;
	for (int i = 0; i < found; i++)
		context_reserve(t->contexts[i]);
	return true;
}

void context_ticket_abandon(struct context_ticket *t)
{
	if (t->owner)
		owner[t->round > 0] = NULL;
	t->owner = false;
}

/* Once: a program that gets errors back may try a million times. */
static void say_none_left(void)
{
	static bool said;

	if (!said)
		log_warn("no number for a new communicator is left: one process can have about %d; "
			 "free those no longer needed with MPI_Comm_free",
			 CONTEXT_IDS);
	said = true;
}

bool context_ticket_settle(struct context_ticket *t, int *error)
{
	int half = t->round > 0;
	context_ticket_abandon(t);
	*error = MPI_SUCCESS;
	if (take_lowest(t, half))
		return true;
	/* everybody offered what it had, and too few ids are free at all of them */
	if (half && t->words[CONTEXT_HALF_WORDS]) {
		say_none_left();
		*error = MPI_ERR_OTHER;
		return true;
	}
	t->round++;
	return false;
}

int context_agree(struct comm *parent, uint32_t *context)
{
	struct context_ticket t;
	int error;
	context_ticket_open(&t, context_key(parent->context, KEY_ALL, 0), 1);
	for (;;) {
		context_ticket_offer(&t);
		error = coll_allreduce(MPI_IN_PLACE, t.words, CONTEXT_WORDS,
				       datatype_of(MPI_UINT64_T), op_of(MPI_BAND), parent);
		if (error)
			context_ticket_abandon(&t);
		if (error || context_ticket_settle(&t, &error))
			break;
		/* whoever is in our way in this process has to move on */
		match_progress();
		guard_safe_point();
		yield_or_nap();
	}
	context_ticket_close(&t);
	*context = t.contexts[0];
	return error;
}
