/* SPDX-License-Identifier: BSD-3-Clause */
/* Scans over nodes, chunk by chunk. Everybody deposits its elements. Each piece of the tree that
 * members of one node make (hier_map.c) and others need is combined by its last member, who sends
 * it to the first members of the nodes that need it. Those deposit what has come. Then each member
 * combines f(0, rank) of coll.h: all whole subtrees of that are subtrees of the tree of all ranks,
 * so the part of them that lives on another node is a piece.
 *
 *	rank 5 of 8 on nodes of 3, inclusive: ((0 1) (2 3)) (4 5)
 *	pieces [0 1] [2] | [3] [4 5] | [6 7], of which it gets the first two
 *
 * Where ranks are in rows nobody waits for one that comes later: they run ahead, and with more
 * ranks than cores each does several operations, or chunks, before the next one gets the core.
 */
#include "coll/hier/hier.h"

#include "coll/hier/join.h"
#include "coll/cells/cells_fold.h"
#include "coll/cells/scratch.h"

/* Those who act send to each other, so there must not be many of them; and each member combines
 * for itself what all of its neighbours before it have, and pieces of others, so of vectors there
 * must not be many of these: of pieces that nodes don't combine at home few enough to be no more
 * work than the tree of messages is. Chunks are what the network takes without asking, and match/
 * keeps without a mapping of its own when they come before their receive. */
enum { NODES = 8, NEIGHBOURS = 16, DEALT = 12 };
enum { PIECES_BYTES = 131072, CHUNK = 16384, LAP = 131072 };
_Static_assert(2 * PIECES_BYTES + CHUNK <= COLL_CELL_RING, "a chunk's deposits fit, see lap_bytes");

struct scan {
	struct coll_home *h;
	const struct coll_args *a;
	const struct coll_hier *t;
	int gets, first_got; /* how many pieces this node gets of others, and the first of them */
	bool wants;	     /* this member needs some of them */
	int own;	     /* the piece that this member combines for others; -1: none */
	size_t first, count; /* elements at work */
	size_t span, stride;
	uint64_t k, k2;		 /* the two deposits */
	char *room;		 /* pieces that have come, of the first member */
	char *piece;		 /* this member's own, if it isn't its result */
	char *levels;		 /* the result, and partial ones */
	struct request *sending; /* the piece, by who also receives; NULL: it has left */
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
	bool few = hier_few_pieces(t) || t->pieces <= DEALT;
	return t->most <= NEIGHBOURS && few && a->rtype->extent > 0 &&
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

static int own_piece(const struct coll_hier *t, int rank)
{
	for (int p = 0; p < t->pieces; p++)
		if (t->piece[p].hi == rank + 1)
			return needed(t, &t->piece[p]) ? p : -1;
	return -1;
}

/* How many pieces that begin before hi does this node get? first: the first of them. */
static int pieces_got(const struct coll_hier *t, int hi, int *first)
{
	int n = 0;
	for (int p = t->pieces - 1; p >= 0; p--)
		if (t->piece[p].lo < hi && needs(t, t->node, &t->piece[p])) {
			*first = p;
			n++;
		}
	return n;
}

static char *value(const struct scan *x, char *room, int p)
{
	return room + (size_t)p * x->stride - x->a->rtype->true_lb;
}

static const char *own_elements(const struct scan *x)
{
	return coll_input(x->a) + (ptrdiff_t)x->first * x->a->rtype->extent;
}

static char *result(const struct scan *x)
{
	return (char *)x->a->rbuf + (ptrdiff_t)x->first * x->a->rtype->extent;
}

/* Is the piece that others need what this member gets? */
static bool piece_is_result(const struct scan *x)
{
	return x->own >= 0 && x->a->kind == COLL_SCAN && x->t->piece[x->own].lo == 0;
}

/* Makes the piece where it isn't there anyway. at: where it is. */
static int fold_piece(const struct scan *x, const char **at)
{
	const struct hier_piece *p = &x->t->piece[x->own];
	int lo = hier_local(x->t, p->lo), n = p->hi - p->lo;
	struct fold f;
	*at = piece_is_result(x) ? result(x) : own_elements(x);
	if (piece_is_result(x) || n == 1)
		return MPI_SUCCESS;
	if (!x->piece)
		return MPI_ERR_NO_MEM;
	char *to = x->piece - x->a->rtype->true_lb;
	*at = to;
	fold_init(&f, x->h, x->k, x->a);
	f.own = own_elements(x);
	return fold_range(&f, lo, lo + n, 0, x->count, to);
}

/* Who also receives pieces waits for its own one to leave later: those who wait for it may be about
 * to send to this member, and large ones leave only as they are received. */
static bool sends_and_receives(const struct scan *x)
{
	return x->h->rank == 0 && x->gets;
}

static int send_piece(struct scan *x)
{
	const struct coll_hier *t = x->t;
	const struct coll_args *a = x->a;
	const char *at;
	int rc = fold_piece(x, &at);
	if (rc)
		return rc;
	hier_tell(x->h);
	if (t->nodes == 2 && !sends_and_receives(x))
		return match_send(at, x->count, a->rtype, hier_member(t, 1 - t->node, 0), x->tag,
				  a->comm, MATCH_COLL);
	struct coll_block b = {(char *)(uintptr_t)at, x->count, a->rtype};
	struct schedule *s = schedule_create_tagged(a->comm, x->tag);
	for (int node = 0; s && node < t->nodes; node++)
		if (needs(t, node, &t->piece[x->own]))
			schedule_send(s, b, hier_member(t, node, 0));
	return sends_and_receives(x) ? schedule_start(s, &x->sending) : schedule_run(s);
}

static int wait_sent(struct scan *x)
{
	struct request *r = x->sending;
	if (!r)
		return MPI_SUCCESS;
	x->sending = NULL;
	match_wait(r);
	int rc = r->status.MPI_ERROR;
	match_request_free(r);
	return rc;
}

static int receive_pieces(const struct scan *x)
{
	const struct coll_hier *t = x->t;
	const struct coll_args *a = x->a;
	if (!x->room)
		return MPI_ERR_NO_MEM;
	if (x->gets == 1)
		return match_recv(value(x, x->room, x->first_got), x->count, a->rtype,
				  t->piece[x->first_got].hi - 1, x->tag, a->comm, MATCH_COLL,
				  MPI_STATUS_IGNORE);
	struct schedule *s = schedule_create_tagged(a->comm, x->tag);
	for (int p = x->first_got; s && p < t->pieces; p++) {
		struct coll_block b = {value(x, x->room, p), x->count, a->rtype};
		if (needs(t, t->node, &t->piece[p]))
			schedule_recv(s, b, t->piece[p].hi - 1);
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
		return value(x, cells_payload(h, 0, d), p);
	}
	if (hi - lo > 1)
		return NULL;
	if (lo == x->a->comm->rank)
		return own_elements(x);
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
		if (x->wants)
			cells_deposit_of(x->h, 0, x->k2);
		cells_wait_deposits(x->h, x->k, x->h->rank);
	} while (epoch != coll_epoch);
}

static int prefix(const struct scan *x)
{
	const struct coll_args *a = x->a;
	int hi = a->comm->rank + (a->kind == COLL_SCAN);
	if (!x->levels)
		return MPI_ERR_NO_MEM;
	wait_deposits(x);
	if (x->wants && !cells_header(x->h, 0, x->k2)->bytes)
		return MPI_ERR_OTHER;
	if (!hi)
		return MPI_SUCCESS;
	/* own elements are used last, so the result may come to lie where they are */
	char *out = result(x);
	char *to = a->rtype->contiguous ? out : x->levels - a->rtype->true_lb;
	const char *made = combine(x, 0, hi, to, 1);
	if (made != out)
		fold_give(a, out, made, x->count);
	return MPI_SUCCESS;
}

static void deposit_own(const struct scan *x)
{
	/* nobody here comes behind the last one */
	size_t bytes = x->h->rank + 1 < x->h->n ? x->span : 0;
	char *room = cells_room(x->h, x->k, bytes);
	memcpy(room, own_elements(x) + x->a->rtype->true_lb, bytes);
	cells_publish_ring(x->h, x->k);
}

static void note(struct scan *x, int rc)
{
	x->rc = x->rc ? x->rc : rc;
}

/* Progress goes from before the first deposit to after the last one: both are in use up to there.
 */
static void scan_chunk(struct scan *x)
{
	struct coll_home *h = x->h;
	x->k = x->k2 = cells_begin(h);
	deposit_own(x);
	if (x->own >= 0 && !piece_is_result(x))
		note(x, send_piece(x));
	if (!x->wants)
		note(x, prefix(x));
	if (piece_is_result(x))
		note(x, send_piece(x));
	if (x->gets) {
		x->k2 = cells_begin(h);
		if (h->rank == 0) {
			hier_tell(h);
			note(x, receive_pieces(x));
			deposit_pieces(x);
			hier_tell(h);
			note(x, wait_sent(x));
		}
	}
	if (x->wants)
		note(x, prefix(x));
	cells_finish_ring(h, x->k2);
	hier_tell(h);
}

/* Bytes of the cell's ring that are used again and again, so that what is passed on stays in the
 * core's cache. In any place of it both deposits of a chunk must fit without those of the chunk
 * before: one that goes back to the beginning waits for all that is in the ring to be done with. */
static size_t lap_bytes(const struct scan *x)
{
	size_t pieces = (size_t)x->t->pieces * x->stride, both = 2 * pieces + x->stride;
	return both > LAP ? min_size(both, COLL_CELL_RING) : LAP;
}

int hier_scan(struct coll_home *h, const struct coll_args *a)
{
	const struct datatype *type = a->rtype;
	size_t one = coll_span(type, 1), chunk = a->rcount;
	struct scan x = {.h = h, .a = a, .t = a->comm->coll->hier, .tag = hier_tag(a->comm)};
	int hi = a->comm->rank + (a->kind == COLL_SCAN), first;
	x.gets = pieces_got(x.t, x.t->n, &x.first_got);
	x.wants = pieces_got(x.t, hi, &first) > 0;
	x.own = own_piece(x.t, a->comm->rank);
	if (coll_span(type, a->rcount) > chunk_bytes(x.t))
		chunk = 1 + (chunk_bytes(x.t) - one) / (size_t)type->extent;
	x.stride = ALIGN_UP(coll_span(type, chunk), CACHE_LINE);
	x.levels = scratch_get((size_t)(34 - __builtin_clz((unsigned)x.t->n)) * x.stride + 1);
	if (h->rank == 0 && x.gets)
		x.room = scratch_get((size_t)x.t->pieces * x.stride + 1);
	if (x.own >= 0 && !piece_is_result(&x))
		x.piece = scratch_get(x.stride + 1);
	h->lap = lap_bytes(&x);
	for (; x.first < a->rcount; x.first += x.count) {
		x.count = min_size(chunk, a->rcount - x.first);
		x.span = coll_span(type, x.count);
		scan_chunk(&x);
	}
	h->lap = COLL_CELL_RING;
	scratch_put(x.piece);
	scratch_put(x.room);
	scratch_put(x.levels);
	return x.rc;
}
