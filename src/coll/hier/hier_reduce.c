/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions over nodes. Each node combines those pieces of the tree that its members make
 * (hier_map.c) and those who act for nodes combine the rest: the very additions of the tree of
 * coll.h, wherever members live.
 *
 * Small: everybody deposits its elements in its cell, one member of a node combines. Longer
 * vectors: hier_vector.c.
 */
#include "coll/hier/hier.h"

#include "coll/hier/join.h"
#include "coll/cells/cells_fold.h"
#include "coll/hier/hier_vector.h"
#include "coll/cells/scratch.h"

/* With more pieces, as where ranks are dealt out to nodes in turn, each operand travels. That costs
 * nothing while messages do, and pays again where the results are large: those cross the network
 * once a node, and not once a member. In between reductions are left to the tree of messages; those
 * whose results each go to one member, up to longer vectors. So are those that few members of a
 * small node would have to combine out of many pieces. */
enum { PIECES_BYTES = 65536, DEALT_BYTES = 65536, DEALT_SCATTER = 524288, PIECES_A_SLICE = 32 };

bool hier_reduce_suits(const struct coll_args *a)
{
	const struct coll_hier *t = a->comm->coll->hier;
	size_t span = coll_span(a->rtype, hier_vector_length(a)), pieces = (size_t)t->pieces;
	size_t dealt = a->kind == COLL_REDUCE_SCATTER ? DEALT_SCATTER : DEALT_BYTES;
	bool few = hier_few_pieces(t),
	     pays = span >= dealt && t->pieces <= PIECES_A_SLICE * t->least;
	if (span <= coll_inline_max)
		return few || span * pieces <= PIECES_BYTES;
	return (few || pays) && hier_vector_suits(a);
}

/* What a schedule among those who act needs: room for all pieces; and this node's, combined. */
static struct coll_block *pieces_fold(struct schedule *s, struct coll_home *h, uint64_t k,
				      const struct coll_args *a)
{
	const struct coll_hier *t = a->comm->coll->hier;
	struct coll_block *value = heap_alloc((size_t)t->pieces * sizeof(*value));
	struct fold f;
	fold_init(&f, h, k, a);
	f.own = coll_input(a);
	for (int p = 0; value && p < t->pieces; p++) {
		const struct hier_piece *piece = &t->piece[p];
		char *room = schedule_temp(s, a->rtype, a->rcount);
		value[p] = (struct coll_block){room, a->rcount, a->rtype};
		if (!room || piece->node != t->node)
			continue;
		int lo = hier_local(t, piece->lo);
		int rc = fold_range(&f, lo, lo + piece->hi - piece->lo, 0, a->rcount, room);
		if (rc)
			schedule_fail(s, rc);
	}
	if (!value)
		schedule_fail(s, MPI_ERR_NO_MEM);
	return value;
}

static int act(struct coll_home *h, uint64_t k, const struct coll_args *a,
	       const struct hier_team *team, int tag)
{
	struct schedule *s = schedule_create_tagged(a->comm, tag);
	struct coll_block out = {a->rbuf, a->rcount, a->rtype};
	struct coll_block *value = s ? pieces_fold(s, h, k, a) : NULL;
	cells_finish_ring(h, k);
	hier_tell(h);
	if (value)
		hier_plan_reduce(s, team, a->op, value, out, team->root);
	heap_free(value);
	return schedule_run(s);
}

static int reduce_small(struct coll_home *h, const struct coll_args *a, int root)
{
	const struct coll_hier *t = a->comm->coll->hier;
	struct hier_team team = {t, root, 0};
	int tag = hier_tag(a->comm), rc = MPI_SUCCESS, acting = hier_acting(&team, t->node);
	size_t span = coll_span(a->rtype, a->rcount);
	uint64_t k = cells_begin(h);
	if (acting == a->comm->rank) {
		rc = act(h, k, a, &team, tag);
	} else {
		char *room = cells_room(h, k, span);
		memcpy(room, coll_input(a) + a->rtype->true_lb, span);
		cells_publish_ring(h, k);
		cells_finish(h, k);
	}
	if (root >= 0 || h->n == 1)
		return rc;
	struct coll_args down = {.kind = COLL_BCAST,
				 .comm = a->comm,
				 .rbuf = a->rbuf,
				 .rcount = a->rcount,
				 .rtype = a->rtype};
	int got = cells_bcast(h, &down);
	return rc ? rc : got;
}

/* Everybody gets all of a small vector and keeps its own elements: messages cost, and not what they
 * carry. */
static int scatter_small(struct coll_home *h, const struct coll_args *a, size_t length)
{
	const struct datatype *t = a->rtype;
	struct coll_args all = *a;
	void *block;
	size_t first = hier_vector_first(a, a->comm->rank);
	size_t count = hier_vector_first(a, a->comm->rank + 1) - first;
	char *image = fold_image(t, length, &block);
	if (!image)
		return MPI_ERR_NO_MEM;
	all.sbuf = coll_input(a);
	all.rbuf = image;
	all.rcount = length;
	all.rcounts = NULL;
	int rc = reduce_small(h, &all, -1);
	fold_give(a, a->rbuf, image + (ptrdiff_t)first * t->extent, count);
	scratch_put(block);
	return rc;
}

int hier_reduce(struct coll_home *h, const struct coll_args *a)
{
	size_t length = hier_vector_length(a);
	if (coll_span(a->rtype, length) > coll_inline_max)
		return hier_vector(h, a);
	if (a->kind == COLL_REDUCE_SCATTER)
		return scatter_small(h, a, length);
	return reduce_small(h, a, a->kind == COLL_REDUCE ? a->root : -1);
}
