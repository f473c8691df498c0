/* SPDX-License-Identifier: BSD-3-Clause */
/* Output that the head has got and of which it has not said that it is printed. A head that dies
 * takes it along; the next one gets it again, and knows by its position what was printed before. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "job/agent_private.h"

enum { PIECE = 65536 };

static bool keeps(const struct agent *a)
{
	return a->setup.grace_ns != 0;
}

void agent_kept_fini(struct agent_rank *r)
{
	for (int i = 0; i < 2; i++) {
		free(r->kept[i].bytes);
		r->kept[i] = (struct agent_kept){0};
	}
}

void agent_kept_begin(struct agent *a, uint32_t rank, const uint64_t position[3])
{
	for (int i = 0; keeps(a) && i < 2; i++) {
		struct agent_kept *k = &a->ranks[rank].kept[i];

		k->begin = k->end = 0;
		k->first = position[i + 1];
	}
}

static bool make_room(struct agent_kept *k, size_t len)
{
	size_t cap = k->cap ? k->cap : 4096;
	unsigned char *more;

	if (k->begin > 0 && k->cap - k->end < len) {
		memmove(k->bytes, k->bytes + k->begin, k->end - k->begin);
		k->end -= k->begin;
		k->begin = 0;
	}
	while (cap - k->end < len)
		cap *= 2;
	if (cap == k->cap)
		return true;
	more = realloc(k->bytes, cap);
	if (!more)
		return false;
	k->bytes = more;
	k->cap = cap;
	return true;
}

/* Without memory this much can't come again: the position says so to the next head. */
void agent_kept_add(struct agent *a, uint32_t rank, int which, const void *bytes, size_t len)
{
	struct agent_kept *k = &a->ranks[rank].kept[which - 1];

	if (!keeps(a))
		return;
	if (!make_room(k, len)) {
		k->first += k->end - k->begin + len;
		k->begin = k->end = 0;
		return;
	}
	memcpy(k->bytes + k->end, bytes, len);
	k->end += len;
}

/* What comes again after a rollback may have been printed long ago: then it need not be kept. */
void agent_kept_passed(struct agent *a, const struct message *m)
{
	struct agent_kept *k;
	uint64_t drop;

	if (m->rank >= a->setup.nranks || m->value < 1 || m->value > 2)
		return;
	k = &a->ranks[m->rank].kept[m->value - 1];
	if (m->number <= k->first)
		return;
	drop = m->number - k->first;
	if (drop > k->end - k->begin)
		drop = k->end - k->begin;
	k->begin += drop;
	k->first += drop;
}

void agent_kept_send(struct agent *a)
{
	a->window[0].out = a->window[1].out = 0;
	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		for (int i = 0; agent_has(a, r) && i < 2; i++) {
			const struct agent_kept *k = &a->ranks[r].kept[i];

			for (size_t at = k->begin; at < k->end; at += PIECE) {
				size_t len = k->end - at < PIECE ? k->end - at : PIECE;

				agent_send(a, &(struct message){.type = MSG_OUTPUT,
								.rank = r,
								.value = i + 1,
								.bytes = k->bytes + at,
								.len = len});
				a->window[i].out += len;
			}
		}
	}
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		for (int i = 0; i < 2; i++)
			if (!stream_window_full(&a->window[i]) && !agent_is_copy(a, r))
				stream_resume(&a->ranks[r].out[i]);
}
