/* SPDX-License-Identifier: BSD-3-Clause */
#include "ftb/kept.h"

#include <stdlib.h>
#include <string.h>
#include "base/base.h"

enum {
	RETAINED_ABOVE = 256 << 10, /* bytes of WARNING and above sent again to a new broker */
	RETAINED_INFO = 64 << 10,   /* of INFO, published while there was no broker */
	SEEN = 8192, /* events of WARNING and above that are remembered as received */
	SEEN_WAYS = 4,
	KEPT_SECONDS = 10,
};

struct retained {
	struct retained *next;
	double when;
	bool info;
	uint32_t len;
	uint8_t bytes[];
};

static void forget(struct ftb_kept *k, struct retained *prev, struct retained *r)
{
	*(prev ? &prev->next : &k->first) = r->next;
	if (k->last == r)
		k->last = prev;
	*(r->info ? &k->info : &k->above) -= r->len;
	free(r);
}

static void trim(struct ftb_kept *k, bool info, size_t to)
{
	struct retained *prev = NULL, *r = k->first, *next;

	for (; r && *(info ? &k->info : &k->above) > to; r = next) {
		next = r->next;
		if (r->info == info)
			forget(k, prev, r);
		else
			prev = r;
	}
}

void kept_fini(struct ftb_kept *k)
{
	while (k->first)
		forget(k, NULL, k->first);
	free(k->seen);
	*k = (struct ftb_kept){0};
}

void kept_add(struct ftb_kept *k, const struct ftb_event *e, const uint8_t *bytes, size_t len)
{
	struct retained *r = malloc(sizeof(*r) + len);
	bool info = ftb_event_info(e);

	if (!r)
		return;
	*r = (struct retained){.when = clock_seconds(), .info = info, .len = (uint32_t)len};
	memcpy(r->bytes, bytes, len);
	*(k->last ? &k->last->next : &k->first) = r;
	k->last = r;
	*(info ? &k->info : &k->above) += len;
	trim(k, info, info ? RETAINED_INFO : RETAINED_ABOVE);
}

void kept_resend(struct ftb_kept *k, struct outq *to)
{
	double now = clock_seconds();
	struct ftb_event e;

	for (struct retained *r = k->first; r; r = r->next) {
		double age = (now - r->when) * 1e3;

		ftb_event_set_age(r->bytes, age < 1 ? 1 : age > 4e9 ? 4000000000u : (uint32_t)age);
		if (ftb_event_parse(r->bytes, r->len, &e) == r->len)
			outq_event(to, &e, r->bytes, r->len, NULL, NULL);
	}
	trim(k, true, 0);
}

void kept_forget_old(struct ftb_kept *k)
{
	double limit = clock_seconds() - KEPT_SECONDS;

	while (k->first && k->first->when < limit)
		forget(k, NULL, k->first);
}

bool kept_seen(struct ftb_kept *k, const struct ftb_event *e)
{
	uint64_t h = (e->publisher ^ e->seq * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
	uint64_t(*way)[2];

	if (!k->seen)
		k->seen = calloc(SEEN, sizeof(*k->seen));
	if (!k->seen)
		return false;
	way = &k->seen[(h >> 40) % (SEEN / SEEN_WAYS) * SEEN_WAYS];
	for (int i = 0; i < SEEN_WAYS && e->age_ms; i++)
		if (way[i][0] == e->publisher && way[i][1] == e->seq)
			return true;
	memmove(way + 1, way, (SEEN_WAYS - 1) * sizeof(*way)); /* the oldest is forgotten */
	way[0][0] = e->publisher;
	way[0][1] = e->seq;
	return false;
}
