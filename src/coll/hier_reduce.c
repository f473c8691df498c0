/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions over nodes. Each node combines those pieces of the tree that its members make
 * (hier_map.c) and those who act for nodes combine the rest: the very additions of the tree of
 * coll.h, wherever members live.
 *
 * Small: everybody deposits its elements in its cell, one member of a node combines. Vectors are
 * cut into slices, as many as the smallest node has members; member i of each node combines slice i
 * of its node's members, out of their memory, does the rest with its counterparts on the other
 * nodes, and whoever wants the result reads the slices where they are.
 */
#include "coll/hier.h"

#include "coll/cells_fold.h"
#include "coll/join.h"
#include "coll/scratch.h"

/* Small reductions with more pieces, as where ranks are dealt out to nodes in turn, are left to the
 * tree of messages from so many bytes on. */
enum { PIECES_BYTES = 65536 };

bool hier_reduce_suits(const struct coll_home *h, const struct coll_args *a)
{
	const struct coll_hier *t = a->comm->coll->hier;
	size_t span = coll_span(a->rtype, a->rcount), pieces = (size_t)t->pieces;
	bool few = pieces * 3 <= (size_t)t->n * 2; /* combining at home saves a third of it */
	if (span <= coll_inline_max)
		return few || span * pieces <= PIECES_BYTES;
	return few && h->reads;
}

/* What a schedule among those who act needs: room for all pieces; and this node's, combined. */
static struct coll_block *pieces_fold(struct schedule *s, struct coll_home *h, uint64_t k,
				      const struct coll_args *a, size_t first, size_t count)
{
	const struct coll_hier *t = a->comm->coll->hier;
	struct coll_block *value = heap_alloc((size_t)t->pieces * sizeof(*value));
	struct fold f;
	fold_init(&f, h, k, a);
	f.own = coll_input(a);
	for (int p = 0; value && p < t->pieces; p++) {
		const struct hier_piece *piece = &t->piece[p];
		char *room = schedule_temp(s, a->rtype, count);
		value[p] = (struct coll_block){room, count, a->rtype};
		if (!room || piece->node != t->node)
			continue;
		int lo = hier_local(t, piece->lo), rc;
		rc = fold_range(&f, lo, lo + piece->hi - piece->lo, first, count,
				room - (ptrdiff_t)first * a->rtype->extent);
		if (rc)
			schedule_fail(s, rc);
	}
	if (!value)
		schedule_fail(s, MPI_ERR_NO_MEM);
	return value;
}

static void tell(struct coll_home *h)
{
	if (UNLIKELY(h->mirror))
		cells_mirror_tell(h);
}

/* ---- small ---- */

static int act(struct coll_home *h, uint64_t k, const struct coll_args *a,
	       const struct hier_team *team, int tag)
{
	struct schedule *s = schedule_create_tagged(a->comm, tag);
	struct coll_block out = {a->rbuf, a->rcount, a->rtype};
	struct coll_block *value = s ? pieces_fold(s, h, k, a, 0, a->rcount) : NULL;
	cells_finish_ring(h, k);
	tell(h);
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

/* ---- vectors ---- */

/* A vector's slices, and this process's part in them. */
struct slices {
	int n;		     /* so many */
	int mine;	     /* this process's; n or more: none */
	size_t first, count; /* its elements */
	bool wanted;	     /* this process gets the whole result */
	char *out;	     /* the result, or (not wanted) this slice of it */
	void *block;	     /* of out, if that isn't the user's memory */
};

static bool slices_init(struct slices *p, const struct coll_home *h, const struct coll_args *a,
			int root)
{
	const struct datatype *t = a->rtype;
	*p = (struct slices){.n = a->comm->coll->hier->least,
			     .mine = h->rank,
			     .wanted = root < 0 || root == a->comm->rank};
	if (p->mine < p->n) {
		p->first = coll_part(a->rcount, p->n, p->mine);
		p->count = coll_part(a->rcount, p->n, p->mine + 1) - p->first;
	}
	if (p->wanted && t->contiguous) {
		p->out = a->rbuf;
		return true;
	}
	p->out = fold_image(t, p->wanted ? a->rcount : p->count, &p->block);
	if (p->out && !p->wanted)
		p->out -= (ptrdiff_t)p->first * t->extent;
	return p->out;
}

/* Combines this slice over all nodes; the result goes to its place in out. */
static int slice_run(struct coll_home *h, uint64_t k, const struct coll_args *a,
		     const struct slices *p, int root, int tag)
{
	/* the root gets the slices from the members of its node: no one stands for it */
	struct hier_team team = {a->comm->coll->hier, -1, p->mine};
	struct schedule *s = schedule_create_tagged(a->comm, tag);
	struct coll_block *value = s ? pieces_fold(s, h, k, a, p->first, p->count) : NULL;
	struct coll_block out = {p->out + (ptrdiff_t)p->first * a->rtype->extent, p->count,
				 a->rtype};
	if (value)
		hier_plan_reduce(s, &team, a->op, value, out, root);
	heap_free(value);
	return schedule_run(s);
}

/* The other slices, as they come to be ready. */
static int slices_collect(struct coll_home *h, uint64_t k, const struct coll_args *a,
			  const struct slices *p)
{
	const struct datatype *t = a->rtype;
	int rc = MPI_SUCCESS;
	for (int i = 1; i <= h->n; i++) {
		int member = (h->rank + i) % h->n;
		if (member >= p->n || member == h->rank)
			continue;
		size_t first = coll_part(a->rcount, p->n, member);
		size_t count = coll_part(a->rcount, p->n, member + 1) - first;
		cells_wait(&h->cells[member]->progress, k * COLL_STAGES + 1);
		struct coll_header *d = cells_deposit_of(h, member, k);
		if (count && !rc)
			rc = cells_read(h, member, d->offset,
					p->out + (ptrdiff_t)first * t->extent + t->true_lb,
					coll_span(t, count));
	}
	return rc;
}

static int reduce_vector(struct coll_home *h, const struct coll_args *a, int root)
{
	const struct datatype *t = a->rtype;
	int tag = hier_tag(a->comm), part = MPI_SUCCESS, rest = MPI_SUCCESS;
	uint64_t k = cells_begin(h);
	struct slices p;
	bool lacking = !slices_init(&p, h, a, root);
	char *slice = lacking ? NULL : p.out + (ptrdiff_t)p.first * t->extent + t->true_lb;
	cells_point(h, k, coll_input(a) + t->true_lb, coll_span(t, a->rcount), (uintptr_t)slice);
	cells_publish_ring(h, k);
	if (p.mine < p.n && !lacking)
		part = slice_run(h, k, a, &p, root, tag);
	cells_stage_ring(h, k * COLL_STAGES + 1);
	if (p.wanted && !lacking)
		rest = slices_collect(h, k, a, &p);
	cells_finish_ring(h, k);
	cells_wait_all(h, cells_done(k));
	cells_all_done(h, k);
	if (p.wanted && p.block)
		fold_give(a, a->rbuf, p.out, a->rcount);
	scratch_put(p.block);
	return lacking ? MPI_ERR_NO_MEM : part ? part : rest;
}

int hier_reduce(struct coll_home *h, const struct coll_args *a, int root)
{
	if (coll_span(a->rtype, a->rcount) <= coll_inline_max)
		return reduce_small(h, a, root);
	return reduce_vector(h, a, root);
}
