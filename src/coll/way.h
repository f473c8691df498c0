/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way a large payload takes between more than two members: in pieces through the cells (two
 * copies by the processor), or by single copies out of its owner's memory (the kernel looks up and
 * pins every page). Which is cheaper depends on how fast lines travel between the cores at hand and
 * on who writes the buffers in between, so members measure what a byte costs them either way, and
 * whoever decides takes the cheaper one (docs/collectives.md, 'Large payloads').
 *
 * A word goes with the first deposit of a large operation: its owner's decision. It is the same for
 * all members because they all get it from there. */
#ifndef HALE_COLL_WAY_H
#define HALE_COLL_WAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/base.h"
#include "base/clock.h"

typedef enum way { WAY_PIECES, WAY_SINGLE, WAYS } way_t;
/* What a member does with the bytes, since each costs differently: the root of a broadcast gives,
 * the others take, all members reduce. Giving costs a root a copy into its cell when it goes in
 * pieces; with single copies the others read its buffer. */
typedef enum way_kind { WAY_GIVE, WAY_TAKE, WAY_REDUCE, WAY_KINDS } way_kind_t;
enum { WAY_SIZES = 3 }; /* below 128 KiB, 512 KiB, beyond: what still lies in which cache */

/* What a KiB costs a member, in quarters of a nanosecond; 0: not known. In its cell: written by it,
 * read by whoever decides. */
struct way_costs {
	_Atomic uint16_t per_kib[WAY_KINDS][WAY_SIZES][WAYS];
};

/* A decision. */
struct way_order {
	uint32_t way;	  /* way_t */
	uint32_t measure; /* note what it costs */
};

/* How far whoever decides has come with operations of one kind and size. */
struct way_plan {
	uint32_t operations;
	uint32_t best; /* way_t */
};

extern int way_forced; /* way_t, or -1: by measuring; HALE_COLL=pieces, copies */

static inline unsigned way_size(size_t bytes)
{
	return bytes < 131072 ? 0 : bytes < 524288 ? 1 : 2;
}

/* Is it time to weigh? Then what all members' costs of either way add up to; 0: not known, as in
 * cells that a restart has renewed, and the plan stays as it is. */
bool way_due(const struct way_plan *p);
void way_weigh(struct way_plan *p, uint64_t pieces, uint64_t single);
/* One member's; kinds: bits of those that an operation consists of. */
uint64_t way_cost(const struct way_costs *costs, unsigned kinds, unsigned size, way_t way);
/* The order for the next operation. */
struct way_order way_next(struct way_plan *p);

/* The time that this member spends on moving bytes, without what it waits for others. */
struct way_clock {
	bool runs;
	uint64_t ns;
};

static inline void way_clock_start(struct way_clock *c)
{
	if (UNLIKELY(c->runs))
		c->ns -= clock_ns();
}
static inline void way_clock_stop(struct way_clock *c)
{
	if (UNLIKELY(c->runs))
		c->ns += clock_ns();
}

/* Into this member's costs. The best of late counts: whoever lost the core in the middle of a copy
 * measured that. */
void way_note(struct way_costs *own, way_kind_t kind, way_t way, const struct way_clock *c,
	      size_t bytes);

#endif
