/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/way.h"

int way_forced = -1;

/* The first operations go either way in turn, two by two, since the first of two finds the other
 * way's lines in the caches. Later the way not taken is tried again now and then: the host of a
 * virtual machine moves its cores, and programs change what they do between two operations. */
enum { TRIES = 8, AGAIN = 128, MEASURE_EVERY = 16 };

bool way_due(const struct way_plan *p)
{
	return way_forced < 0 && p->operations % MEASURE_EVERY == TRIES;
}

/* Single copies have to be cheaper by an eighth: who owns the memory waits for its readers. */
void way_weigh(struct way_plan *p, uint64_t pieces, uint64_t single)
{
	if (pieces && single)
		p->best = single + single / 8 < pieces ? WAY_SINGLE : WAY_PIECES;
}

uint64_t way_cost(const struct way_costs *costs, unsigned kinds, unsigned size, way_t way)
{
	uint64_t sum = 0;
	for (unsigned kind = 0; kind < WAY_KINDS; kind++)
		if (kinds & 1u << kind)
			sum += atomic_load_explicit(&costs->per_kib[kind][size][way],
						    memory_order_relaxed);
	return sum;
}

struct way_order way_next(struct way_plan *p)
{
	if (UNLIKELY(way_forced >= 0))
		return (struct way_order){.way = (uint32_t)way_forced};
	uint32_t at = p->operations++, turn = at % AGAIN;
	if (at < TRIES)
		return (struct way_order){at & 2 ? WAY_SINGLE : WAY_PIECES, true};
	if (turn < 2)
		return (struct way_order){p->best == WAY_PIECES ? WAY_SINGLE : WAY_PIECES, true};
	return (struct way_order){p->best, turn % MEASURE_EVERY == 2};
}

void way_note(struct way_costs *own, way_kind_t kind, way_t way, const struct way_clock *c,
	      size_t bytes)
{
	if (LIKELY(!c->runs) || !bytes)
		return;
	_Atomic uint16_t *cost = &own->per_kib[kind][way_size(bytes)][way];
	uint64_t known = atomic_load_explicit(cost, memory_order_relaxed);
	uint64_t now = c->ns * 4096 / bytes;
	if (known && now > known + known / 16 + 1)
		now = known + known / 16 + 1;
	now = now < 1 ? 1 : now > UINT16_MAX ? UINT16_MAX : now;
	atomic_store_explicit(cost, (uint16_t)now, memory_order_relaxed);
}
