/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy/levels.h"

#include <string.h>

/* ---- which images are copied ---- */

struct levels_copies levels_copies_wanted(const struct levels_image *i)
{
	if (!i->owner)
		return (struct levels_copies){false, false};
	return (struct levels_copies){.to_partner = i->partner && !i->partner_has &&
						    i->listed < i->listed_max && i->there < 2,
				      .to_shared = i->share && i->local};
}

/* ---- which checkpoints stay ---- */

enum { SHARED_LEVEL = 4 };

struct levels_keep levels_keep_begin(uint32_t nodes, const bool *there, bool *covered)
{
	memset(covered, 0, nodes * sizeof(*covered));
	return (struct levels_keep){.nodes = nodes, .there = there, .covered = covered};
}

bool levels_keep_wants(struct levels_keep *k, const struct levels_stock *s)
{
	bool wanted = s->level > k->best;

	if (wanted)
		k->best = s->level;
	for (uint32_t n = 0; n < k->nodes && s->level > 0; n++)
		if (!k->covered[n] && s->outlives[n] && k->there[n])
			k->covered[n] = wanted = true;
	return wanted;
}

bool levels_keep_done(const struct levels_keep *k)
{
	return k->best >= SHARED_LEVEL;
}

/* ---- where an image is looked for ---- */

/* `tried` walks through the holders for LEVELS_HERE, then the shared folder, then the holders for
 * LEVELS_ELSEWHERE. */
levels_place_t levels_fetch_next(uint32_t *tried, const struct levels_holder *holders,
				 uint32_t count, bool local, uint32_t *holder)
{
	while (*tried < 2 * count + 1) {
		uint32_t at = (*tried)++;

		*holder = at < count ? at : at - count - 1;
		if (at < count && holders[at].here && holders[at].usable)
			return LEVELS_HERE;
		if (at == count && !local)
			return LEVELS_SHARED;
		if (at > count && !holders[*holder].here && holders[*holder].usable)
			return LEVELS_ELSEWHERE;
	}
	return LEVELS_NOWHERE;
}
