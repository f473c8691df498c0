/* SPDX-License-Identifier: BSD-3-Clause */
/* How a member of a window is reached just now. That may change at every safe point, since a
 * restart may have laid out the ranks otherwise. */
#include "rma/internal.h"

struct gate {
	const struct win *w;
	int member;
};

static bool rma_gate_passed(void *arg)
{
	const struct gate *g = arg;
	return !rma_is_here(g->w, g->member) || rma_is_open(g->w, g->member);
}

static bool rma_see(struct win *w, int member)
{
	struct rma_peer *p = &w->peer[member];
	const struct rma_peer *owner = &w->peer[p->part.owner];
	if (p->seen)
		return true;
	/* a file is mapped from whole pages on */
	uint64_t at = p->part.offset, begin = at / HALE_PAGE * HALE_PAGE;
	size_t bytes = p->part.bytes + (at - begin);
	(void)owner;
	char *map = rma_memory_see(rma_world(w, (int)p->part.owner), begin, bytes, NULL);
	if (!map)
		return false;
	p->seen_map = map;
	p->seen_bytes = bytes;
	p->seen = map + (at - begin);
	return true;
}

enum rma_way rma_reach(struct win *w, int member, int *error)
{
	struct rma_peer *p = &w->peer[member];
	struct gate gate = {w, member};
	*error = MPI_SUCCESS;
	if (member == w->comm->rank)
		return RMA_WAY_DIRECT;
	for (;;) {
		/* what is on its way by messages must come first */
		if (p->pending || p->unflushed || !rma_is_here(w, member))
			return RMA_WAY_FAR;
		if (!rma_is_open(w, member)) {
			match_wait_until(rma_gate_passed, &gate);
			continue;
		}
		if (p->part.shared) {
			if (rma_see(w, member))
				return RMA_WAY_DIRECT;
			*error = MPI_ERR_RMA_SHARED;
			return RMA_WAY_FAR;
		}
		return rma.copies ? RMA_WAY_COPY : RMA_WAY_FAR;
	}
}
