/* SPDX-License-Identifier: BSD-3-Clause */
/* Scans over nodes, chunk by chunk. Everybody deposits its elements. Who acts for a node combines
 * those pieces of the tree that its members make (hier_map.c) and others need, gets the pieces that
 * come before its node's last member and deposits them. Then each member combines f(0, rank) of
 * coll.h: all whole subtrees of that are subtrees of the tree of all ranks, so the part of them
 *that lives on another node is a piece.
 *
 *	rank 5 of 8 on nodes of 3, inclusive: ((0 1) (2 3)) (4 5)
 *	pieces [0 1] [2] | [3] [4 5] | [6 7], of which it gets the first two
 *
 * A node whose members need nothing of others doesn't wait for them: it runs ahead.
 */
#include "coll/hier.h"

#include "coll/join.h"
#include "coll/cells_fold.h"
#include "coll/scratch.h"

/* Those who act send to each other, so there must not be many of them; and each member combines
 * for itself what all of its neighbours before it have, so of vectors there must not be many of
 * these. Chunks are what the network takes without asking. */
enum { NODES = 8, NEIGHBOURS = 16, PIECES_BYTES = 131072, CHUNK = 32768 };

struct scan {
	struct coll_home *h;
	const struct coll_args *a;
	const struct coll_hier *t;
	bool gets;	     /* this node gets pieces of others */
	size_t first, count; /* elements at work */
	size_t span, stride;
	uint64_t k, k2; /* the two deposits */
	char *room;	/* pieces, of who acts */
	char *levels;	/* the result, and partial ones */
	int tag;
	int rc;
};

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t chunk_bytes(const struct coll_hier *t)
{
	return min_size(CHUNK, PIECES_BYTES / (size_t)t->pieces) / CACHE_LINE * CACHE_LINE;
}

bool hier_scan_suits(const struct coll_args *a)
{
	const struct coll_hier *t = a->comm->coll->hier;
	size_t span = coll_span(a->rtype, a->rcount), chunk = chunk_bytes(t);
	if (t->nodes > NODES)
		return false;
	if (span <= chunk && span <= coll_inline_max)
		return true;
	return t->most <= NEIGHBOURS && t->pieces * 3 <= t->n * 2 && a->rtype->extent > 0 &&
	       coll_span(a->rtype, 1) <= chunk;
}

/* ---- pieces ---- */

/* Does a node have members after the beginning of the piece? */
static bool needs(const struct coll_hier *t, int node, const struct hier_piece *p)
{
	return p->node != node && p->lo < hier_member(t, node, hier_members(t, node) - 1);
}

/* Does any? */
static bool needed(const struct coll_hier *t, const struct hier_piece *p)
{
	for (int node = 0; node < t->nodes; node++)
		if (needs(t, node, p))
			return true;
	return false;
}

static struct coll_block value(const struct scan *x, char *room, int p)
{
	return (struct coll_block){room + (size_t)p * x->stride - x->a->rtype->true_lb, x->count,
				   x->a->rtype};
}

static const char *own_elements(const struct scan *x)
{
	return coll_input(x->a) + (ptrdiff_t)x->first * x->a->rtype->extent;
}

static int fold_pieces(const struct scan *x)
{
	const struct coll_hier *t = x->t;
	struct fold f;
	int rc = MPI_SUCCESS;
	fold_init(&f, x->h, x->k, x->a);
	f.own = own_elements(x);
	for (int p = 0; p < t->pieces; p++) {
		const struct hier_piece *piece = &t->piece[p];
		int lo = hier_local(t, piece->lo);
		if (piece->node != t->node || !needed(t, piece))
			continue;
		int r = fold_range(&f, lo, lo + piece->hi - piece->lo, 0, x->count,
				   value(x, x->room, p).buf);
		rc = rc ? rc : r;
	}
	return rc;
}

static int exchange(const struct scan *x)
{
	const struct coll_hier *t = x->t;
	struct hier_team team = {t, -1, 0};
	struct schedule *s = schedule_create_tagged(x->a->comm, x->tag);
	for (int p = 0; s && p < t->pieces; p++) {
		const struct hier_piece *piece = &t->piece[p];
		if (needs(t, t->node, piece))
			schedule_recv(s, value(x, x->room, p), hier_acting(&team, piece->node));
		for (int node = 0; piece->node == t->node && node < t->nodes; node++)
			if (needs(t, node, piece))
				schedule_send(s, value(x, x->room, p), hier_acting(&team, node));
	}
	return schedule_run(s);
}

/* Others wait for it, so it comes whatever happens. */
static void deposit_pieces(const struct scan *x)
{
	size_t bytes = x->rc ? 0 : (size_t)x->t->pieces * x->stride;
	char *cell = cells_room(x->h, x->k2, bytes);
	for (int p = 0; bytes && p < x->t->pieces; p++)
		if (needs(x->t, x->t->node, &x->t->piece[p]))
			memcpy(cell + (size_t)p * x->stride, x->room + (size_t)p * x->stride,
			       x->span);
	cells_publish_ring(x->h, x->k2);
}

/* ---- f(0, rank) ---- */

/* The piece that rank lo begins, or is in. */
static int piece_of(const struct coll_hier *t, int lo)
{
	int first = 0, end = t->pieces;
	while (end - first > 1) {
		int mid = (first + end) / 2;
		if (t->piece[mid].lo <= lo)
			first = mid;
		else
			end = mid;
	}
	return first;
}

/* A subtree that is there already: another node's piece, or one neighbour's elements. */
static const char *leaf(const struct scan *x, int lo, int hi)
{
	const struct coll_hier *t = x->t;
	struct coll_home *h = x->h;
	int p = piece_of(t, lo);
	if (t->node_of[lo] != t->node && t->piece[p].hi == hi) {
		struct coll_header *d = cells_header(h, 0, x->k2);
		return value(x, cells_payload(h, 0, d), p).buf;
	}
	if (hi - lo > 1)
		return NULL;
	int member = hier_local(t, lo);
	return cells_payload(h, member, cells_header(h, member, x->k)) - x->a->rtype->true_lb;
}

/* Returns where the result is: to, or where it was. */
static const char *combine(const struct scan *x, int lo, int hi, char *to, int level)
{
	const char *there = leaf(x, lo, hi);
	if (there)
		return there;
	int mid = lo + coll_split(hi - lo);
	char *room = x->levels + (size_t)level * x->stride - x->a->rtype->true_lb;
	const char *left = combine(x, lo, mid, room, level + 1);
	const char *right = combine(x, mid, hi, to, level + 1);
	op_combine(x->a->op, left, right, to, x->count, x->a->rtype);
	return to;
}

/* All deposits at once, and no safe point from there on. */
static void wait_deposits(const struct scan *x)
{
	unsigned epoch;
	do {
		epoch = coll_epoch;
		if (x->gets)
			cells_deposit_of(x->h, 0, x->k2);
		cells_wait_deposits(x->h, x->k, x->h->rank + 1);
	} while (epoch != coll_epoch);
}

static int prefix(const struct scan *x)
{
	const struct coll_args *a = x->a;
	int hi = a->comm->rank + (a->kind == COLL_SCAN);
	wait_deposits(x);
	if (x->gets && !cells_header(x->h, 0, x->k2)->bytes)
		return MPI_ERR_OTHER;
	if (!hi)
		return MPI_SUCCESS;
	/* own elements are in the cell, so the result may come to lie where they were */
	char *out = (char *)a->rbuf + (ptrdiff_t)x->first * a->rtype->extent;
	char *to = a->rtype->contiguous ? out : x->levels - a->rtype->true_lb;
	const char *result = combine(x, 0, hi, to, 1);
	if (result != out)
		fold_give(a, out, result, x->count);
	return MPI_SUCCESS;
}

/* Progress goes from before the first deposit to after the last one: both are in use up to there.
 */
static void scan_chunk(struct scan *x)
{
	struct coll_home *h = x->h;
	x->k = cells_begin(h);
	char *room = cells_room(h, x->k, x->span);
	memcpy(room, own_elements(x) + x->a->rtype->true_lb, x->span);
	cells_publish_ring(h, x->k);
	if (h->rank == 0 && !x->rc)
		x->rc = fold_pieces(x);
	hier_tell(h);
	if (h->rank == 0 && !x->rc)
		x->rc = exchange(x);
	x->k2 = x->gets ? cells_begin(h) : x->k;
	if (x->gets && h->rank == 0)
		deposit_pieces(x);
	hier_tell(h);
	int rc = x->levels ? prefix(x) : MPI_ERR_NO_MEM;
	cells_finish_ring(h, x->k2);
	x->rc = x->rc ? x->rc : rc;
}

static bool gets_pieces(const struct coll_hier *t)
{
	for (int p = 0; p < t->pieces; p++)
		if (needs(t, t->node, &t->piece[p]))
			return true;
	return false;
}

int hier_scan(struct coll_home *h, const struct coll_args *a)
{
	const struct datatype *type = a->rtype;
	size_t one = coll_span(type, 1), chunk = a->rcount;
	struct scan x = {.h = h, .a = a, .t = a->comm->coll->hier, .tag = hier_tag(a->comm)};
	x.gets = gets_pieces(x.t);
	if (coll_span(type, a->rcount) > chunk_bytes(x.t))
		chunk = 1 + (chunk_bytes(x.t) - one) / (size_t)type->extent;
	x.stride = ALIGN_UP(coll_span(type, chunk), CACHE_LINE);
	x.levels = scratch_get((size_t)(34 - __builtin_clz((unsigned)x.t->n)) * x.stride + 1);
	if (h->rank == 0) {
		x.room = scratch_get((size_t)x.t->pieces * x.stride + 1);
		x.rc = x.room ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	}
	for (; x.first < a->rcount; x.first += x.count) {
		x.count = min_size(chunk, a->rcount - x.first);
		x.span = coll_span(type, x.count);
		scan_chunk(&x);
	}
	scratch_put(x.room);
	scratch_put(x.levels);
	return x.rc;
}
