/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of vectors that don't fit into a cell whole. Every member combines its own part of the
 * vector, piece by piece out of everybody's cell, or out of everybody's memory, and then reads the
 * other parts where they were made. */
#include "coll/cells/cells.h"

#include "coll/cells/cells_fold.h"
#include "coll/coll.h"
#include "coll/cells/scratch.h"

/* With more than two members a vector up to so many bytes is combined by the root alone, where that
 * has to read it from their memory: parts would cost more waiting than they save work. */
enum { REDUCE_PARTS = 65536 };

/* ---- parts ---- */

/* Can a vector go either way? Then the leader says with its deposit which way the next one of this
 * size goes: this one's has to be known before anybody deposits. */
static bool either_way(const struct coll_home *h, const struct coll_args *a, size_t span)
{
	return h->reads && span > COLL_HEADER_SMALL && cells_reduce_in_pieces(a);
}

static void leader_says(struct coll_home *h, uint64_t k, size_t span)
{
	if (h->rank != 0)
		return;
	struct coll_large large = {.bytes = span,
				   .order = cells_order(h, h->reduce_plan, 1u << WAY_REDUCE, span)};
	memcpy(cells_header(h, 0, k)->small, &large, sizeof(large));
}

/* Takes over what the leader has said; all deposits must have come. */
static void leader_heard(struct coll_home *h, uint64_t k, size_t span)
{
	struct coll_large large;
	memcpy(&large, cells_header(h, 0, k)->small, sizeof(large));
	h->reduce_order[way_size(span)] = large.order;
}

/* Combines this member's part to out, everybody's elements being published. */
static int fold_part(struct coll_home *h, uint64_t k, const struct coll_args *a, char *out)
{
	struct fold f;
	size_t first = coll_part(a->rcount, h->n, h->rank);
	fold_init(&f, h, k, a);
	f.own = coll_input(a);
	f.own_in_out = out == f.own;
	return fold_run(&f, h->n, first, coll_part(a->rcount, h->n, h->rank + 1) - first, out);
}

/* Reads the other members' parts to out, one after the other, and waits for each to be ready. Each
 * member begins with the one behind it, so that no two read from the same one at first. */
static int gather_parts(struct coll_home *h, uint64_t k, const struct coll_args *a, char *out,
			struct way_clock *clock)
{
	const struct datatype *t = a->rtype;
	int rc = MPI_SUCCESS;
	for (int i = 1; i < h->n; i++) {
		int member = (h->rank + i) % h->n;
		size_t first = coll_part(a->rcount, h->n, member);
		size_t count = coll_part(a->rcount, h->n, member + 1) - first;
		cells_wait(&h->cells[member]->progress, k * COLL_STAGES + 1);
		struct coll_header *d = cells_deposit_of(h, member, k);
		if (!count || rc)
			continue;
		way_clock_start(clock);
		rc = cells_read(h, member, d->offset,
				out + (ptrdiff_t)first * t->extent + t->true_lb,
				coll_span(t, count));
		way_clock_stop(clock);
	}
	return rc;
}

/* A deposit of addresses for part-wise reduction: where the elements are, and where this member's
 * part of the result will be when its stage is 1. */
static void point_parts(struct coll_home *h, uint64_t k, const struct coll_args *a, char *out)
{
	const struct datatype *t = a->rtype;
	size_t first = coll_part(a->rcount, h->n, h->rank);
	char *part = out + (ptrdiff_t)first * t->extent + t->true_lb;
	cells_point(h, k, coll_input(a) + t->true_lb, coll_span(t, a->rcount), (uintptr_t)part);
}

/* Two members: each combines everything. As many bytes are read as with parts, and nobody has to
 * write what the other has just read. */
static int allreduce_twice(struct coll_home *h, const struct coll_args *a)
{
	uint64_t k = cells_begin(h);
	struct fold f;
	void *block = NULL;
	char *image = NULL;
	int rc = MPI_SUCCESS;
	fold_init(&f, h, k, a);
	f.own = coll_input(a);
	cells_point(h, k, f.own + a->rtype->true_lb, coll_span(a->rtype, a->rcount), 0);
	cells_publish_ring(h, k);
	if (!coll_in_place(a))
		rc = fold_deliver(&f, a, 2, 0, a->rcount, a->rbuf);
	else if ((image = fold_image(a->rtype, a->rcount, &block)))
		rc = fold_run(&f, 2, 0, a->rcount, image);
	else
		rc = MPI_ERR_NO_MEM;
	cells_finish_ring(h, k);
	cells_wait_all(h, cells_done(k));
	cells_all_done(h, k);
	if (image)
		fold_give(a, a->rbuf, image, a->rcount);
	scratch_put(block);
	return rc;
}

static int allreduce_large(struct coll_home *h, const struct coll_args *a, bool either,
			   struct way_clock *clock)
{
	uint64_t k = cells_begin(h);
	size_t span = coll_span(a->rtype, a->rcount);
	void *block = NULL;
	char *out = a->rtype->contiguous ? a->rbuf : fold_image(a->rtype, a->rcount, &block);
	int rc = out ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	if (!out) /* others still need this member's elements and its part: it spoils its own */
		out = a->rbuf;
	point_parts(h, k, a, out);
	if (either)
		leader_says(h, k, span);
	cells_publish_ring(h, k);
	cells_wait_deposits(h, k, h->n);
	if (either)
		leader_heard(h, k, span);
	way_clock_start(clock);
	int part = fold_part(h, k, a, out);
	way_clock_stop(clock);
	cells_stage_ring(h, k * COLL_STAGES + 1);
	int rest = gather_parts(h, k, a, out, clock);
	cells_finish_ring(h, k);
	cells_wait_all(h, cells_done(k));
	cells_all_done(h, k);
	if (block)
		fold_give(a, a->rbuf, out, a->rcount);
	scratch_put(block);
	return rc ? rc : part ? part : rest;
}

/* ---- in pieces through the cells ---- */

bool cells_reduce_in_pieces(const struct coll_args *a)
{
	return a->comm->size > 2 && coll_span(a->rtype, 1) <= COLL_PIECE_REDUCE;
}

/* Reduces this member's part of piece k over all members, into its place in this member's cell and
 * in out (NULL: only the cell). mine: this member's own elements, in the user's buffer. */
static int combine_part(struct coll_home *h, uint64_t k, const struct coll_args *a,
			const char *mine, char *cell, size_t count, char *out,
			struct way_clock *clock)
{
	const struct datatype *t = a->rtype;
	struct fold f;
	void *block = NULL;
	size_t first = coll_part(count, h->n, h->rank);
	size_t n = coll_part(count, h->n, h->rank + 1) - first;
	ptrdiff_t skip = (ptrdiff_t)first * t->extent;
	char *part = out ? out + skip : fold_image(t, n, &block);
	fold_init(&f, h, k, a);
	f.own = mine;
	f.own_in_out = out == mine;
	way_clock_start(clock);
	int rc = part ? fold_run(&f, h->n, first, n, part - skip) : MPI_ERR_NO_MEM;
	if (part)
		memcpy(cell + skip, part + t->true_lb, coll_span(t, n));
	way_clock_stop(clock);
	scratch_put(block);
	return rc;
}

/* This process's elements of a piece into its cell, but for its own part, which nobody else
 * combines. */
static void deposit_others(const struct coll_home *h, const struct datatype *t, const char *mine,
			   char *cell, size_t count)
{
	size_t first = coll_part(count, h->n, h->rank), next = coll_part(count, h->n, h->rank + 1);
	ptrdiff_t skip = (ptrdiff_t)next * t->extent;
	memcpy(cell, mine + t->true_lb, coll_span(t, first));
	memcpy(cell + skip, mine + skip + t->true_lb, coll_span(t, count - next));
}

/* Copies the other members' parts of piece k to out as they come to be ready. */
static void collect_parts(struct coll_home *h, uint64_t k, const struct coll_args *a, size_t count,
			  char *out, struct way_clock *clock)
{
	const struct datatype *t = a->rtype;
	for (int i = 1; i < h->n; i++) {
		int member = (h->rank + i) % h->n;
		size_t first = coll_part(count, h->n, member);
		size_t theirs = coll_part(count, h->n, member + 1) - first;
		ptrdiff_t skip = (ptrdiff_t)first * t->extent;
		cells_wait(&h->cells[member]->progress, k * COLL_STAGES + 1);
		struct coll_header *d = cells_deposit_of(h, member, k);
		way_clock_start(clock);
		memcpy(out + skip + t->true_lb, cells_payload(h, member, d) + skip,
		       coll_span(t, theirs));
		way_clock_stop(clock);
	}
}

/* Elements [first, first + count), to the root or (-1) to all. says: the leader says how the next
 * vector of span bytes goes; 0: it doesn't. */
static int reduce_piece(struct coll_home *h, const struct coll_args *a, size_t first, size_t count,
			int root, size_t says, struct way_clock *clock)
{
	const struct datatype *t = a->rtype;
	uint64_t k = cells_begin(h);
	ptrdiff_t skip = (ptrdiff_t)first * t->extent;
	void *block = NULL;
	const char *mine = coll_input(a) + skip;
	char *out = NULL, *cell = cells_room(h, k, coll_span(t, count));
	int rc = MPI_SUCCESS;
	way_clock_start(clock);
	deposit_others(h, t, mine, cell, count);
	way_clock_stop(clock);
	if (says)
		leader_says(h, k, says);
	cells_publish_ring(h, k);
	if (root < 0 || root == h->rank) {
		out = t->contiguous ? (char *)a->rbuf + skip : fold_image(t, count, &block);
		rc = out ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	}
	/* also who has no element to combine: all have come means that all are done with k - 1 */
	cells_wait_deposits(h, k, h->n);
	cell = cells_payload(h, h->rank, cells_header(h, h->rank, k)); /* or in its mirror */
	if (says)
		leader_heard(h, k, says);
	int part = combine_part(h, k, a, mine, cell, count, out, clock);
	cells_stage_ring(h, k * COLL_STAGES + 1);
	if (out)
		collect_parts(h, k, a, count, out, clock);
	cells_finish_ring(h, k);
	cells_all_done(h, k - 1);
	if (block)
		fold_give(a, (char *)a->rbuf + skip, out, count);
	scratch_put(block);
	return rc ? rc : part;
}

static int reduce_pieces(struct coll_home *h, const struct coll_args *a, int root, bool either,
			 struct way_clock *clock)
{
	size_t one = coll_span(a->rtype, 1), step = coll_span(a->rtype, 2) - one;
	size_t piece = 1, count;
	int rc = MPI_SUCCESS;
	if (step)
		piece += (COLL_PIECE_REDUCE - one) / step;
	for (size_t first = 0; first < a->rcount; first += count) {
		count = a->rcount - first < piece ? a->rcount - first : piece;
		size_t says = either && !first ? coll_span(a->rtype, a->rcount) : 0;
		int r = reduce_piece(h, a, first, count, root, says, clock);
		rc = rc ? rc : r;
	}
	return rc;
}

int cells_allreduce_large(struct coll_home *h, const struct coll_args *a)
{
	size_t span = coll_span(a->rtype, a->rcount);
	if (h->n == 2)
		return allreduce_twice(h, a);
	bool either = either_way(h, a, span);
	struct way_order order = {.way = cells_reduce_in_pieces(a) ? WAY_PIECES : WAY_SINGLE};
	if (either)
		order = h->reduce_order[way_size(span)];
	struct way_clock clock = {.runs = order.measure};
	int rc = order.way == WAY_PIECES ? reduce_pieces(h, a, -1, either, &clock)
					 : allreduce_large(h, a, either, &clock);
	way_note(&h->cell->costs, WAY_REDUCE, order.way, &clock, span);
	return rc;
}

/* ---- to one root ---- */

/* The root alone: with two members, and while parts cost more waiting than they save work. */
static int reduce_alone(struct coll_home *h, const struct coll_args *a)
{
	uint64_t k = cells_begin(h);
	int rc = MPI_SUCCESS;
	if (h->rank == a->root) {
		struct fold f;
		fold_init(&f, h, k, a);
		f.own = coll_input(a);
		f.own_in_out = coll_in_place(a);
		rc = fold_deliver(&f, a, h->n, 0, a->rcount, a->rbuf);
		cells_finish_ring(h, k);
	} else {
		cells_point(h, k, coll_input(a) + a->rtype->true_lb, coll_span(a->rtype, a->rcount),
			    0);
		cells_publish_ring(h, k);
		cells_finish(h, k);
		cells_wait(&h->cells[a->root]->progress, cells_done(k));
	}
	return rc;
}

static int reduce_large(struct coll_home *h, const struct coll_args *a)
{
	uint64_t k = cells_begin(h);
	const struct datatype *t = a->rtype;
	bool root = h->rank == a->root;
	size_t first = coll_part(a->rcount, h->n, h->rank);
	size_t mine = coll_part(a->rcount, h->n, h->rank + 1) - first;
	void *block = NULL;
	char *out;
	if (root && t->contiguous)
		out = a->rbuf;
	else if (root)
		out = fold_image(t, a->rcount, &block);
	else
		out = fold_image(t, mine, &block) - (ptrdiff_t)first * t->extent;
	struct way_clock clock = {0};
	bool lacking = !block && !(root && t->contiguous);
	point_parts(h, k, a, out);
	cells_publish_ring(h, k);
	int rc = lacking ? MPI_ERR_NO_MEM : fold_part(h, k, a, out);
	cells_stage_ring(h, k * COLL_STAGES + 1);
	if (root && !lacking) {
		int rest = gather_parts(h, k, a, out, &clock);
		rc = rc ? rc : rest;
	}
	cells_finish_ring(h, k);
	cells_wait_all(h, cells_done(k));
	cells_all_done(h, k);
	if (root && block)
		fold_give(a, a->rbuf, out, a->rcount);
	scratch_put(block);
	return rc;
}

int cells_reduce_large(struct coll_home *h, const struct coll_args *a)
{
	size_t span = coll_span(a->rtype, a->rcount);
	struct way_clock clock = {0};
	if (cells_reduce_in_pieces(a) &&
	    !(either_way(h, a, span) && h->reduce_order[way_size(span)].way == WAY_SINGLE))
		return reduce_pieces(h, a, a->root, false, &clock);
	return h->n == 2 || span <= REDUCE_PARTS ? reduce_alone(h, a) : reduce_large(h, a);
}
