/* SPDX-License-Identifier: BSD-3-Clause */
/* Barrier and reductions over shared cells.
 *
 * Small: everybody deposits, whoever comes last combines all deposits and publishes the result.
 * Two members just look at each other's deposit. Large: every member combines its own part of the
 * vector, piece by piece out of everybody's cell or (two members, huge elements) out of
 * everybody's memory, and then reads the other parts where they were made.
 * All ways combine in the tree of coll.h. While deposits are combined in place there is no safe
 * point: they are waited for beforehand.
 *
 * What travels is the memory that the elements span, gaps included, because reduction functions
 * see elements in their own layout; only data reaches the user's buffer.
 */
#include "coll/cells.h"

#include "coll/cells_fold.h"
#include "coll/coll.h"
#include "coll/scratch.h"

/* With more than two members a vector up to so many bytes is combined by the root alone, where that
 * has to read it from their memory: parts would cost more waiting than they save work. */
enum { REDUCE_PARTS = 65536 };

static const char *input(const struct coll_args *a)
{
	return coll_in_place(a) ? a->rbuf : a->sbuf;
}

/* This process's elements into its cell; to be published. */
static char *deposit(struct coll_home *h, uint64_t k, const struct coll_args *a, size_t span)
{
	char *room = cells_room(h, k, span);
	memcpy(room, input(a) + a->rtype->true_lb, span);
	return room;
}

/* A result that lies as it will for op_apply, to count elements of the user's buffer. */
static void deliver(const struct coll_args *a, void *to, const char *from, size_t count)
{
	if (LIKELY(a->rtype->contiguous))
		memcpy(to, from, count * a->rtype->size);
	else
		datatype_copy(a->rtype, to, count, a->rtype, from, count);
}

/* An image of count elements to combine into, when the user's buffer has gaps that aren't ours or
 * is still being read. */
static char *image_alloc(const struct datatype *t, size_t count, void **block)
{
	*block = scratch_get(coll_span(t, count) + CACHE_LINE);
	return *block ? (char *)*block - t->true_lb : NULL;
}

/* ---- barrier ---- */

static void exchange(struct coll_home *h, uint64_t k)
{
	int peer = 1 - h->rank;
	atomic_exchange_explicit(&cells_header(h, h->rank, k)->seq, k, memory_order_seq_cst);
	cells_prefetch(h, k);
	if (UNLIKELY(atomic_load_explicit(&h->mail[peer]->asleep, memory_order_relaxed)))
		mailbox_ring_slow(h->mail[peer]);
	cells_deposit_of(h, peer, k);
}

int cells_barrier(struct coll_home *h)
{
	uint64_t k = cells_begin(h);
	if (h->n == 2) {
		cells_room(h, k, 0);
		exchange(h, k);
	} else if (cells_arrive(h, k)) {
		cells_complete(h, k);
	}
	cells_all_done(h, k - 1);
	cells_finish(h, k);
	return MPI_SUCCESS;
}

/* ---- small reductions ---- */

/* Into the user's buffer, through an image if that has gaps. */
static int fold_deliver(struct fold *f, const struct coll_args *a, int hi, size_t first,
			size_t count, void *to)
{
	ptrdiff_t skip = (ptrdiff_t)first * f->type->extent;
	void *block;
	if (LIKELY(f->type->contiguous))
		return fold_run(f, hi, first, count, (char *)to - skip);
	char *image = image_alloc(f->type, count, &block);
	if (!image)
		return MPI_ERR_NO_MEM;
	f->own_in_out = false;
	int rc = fold_run(f, hi, first, count, image - skip);
	deliver(a, to, image, count);
	scratch_put(block);
	return rc;
}

/* The last one combines. The result goes beside the word that announces it, or takes the place of
 * this process's deposit. */
static int combine(struct coll_home *h, uint64_t k, const struct coll_args *a, size_t span,
		   char *own)
{
	struct fold f;
	fold_init(&f, h, k, a);
	char *to = h->cells[0]->result;
	int rc;
	if (span <= COLL_RESULT_SMALL) {
		rc = fold_run(&f, h->n, 0, a->rcount, to - a->rtype->true_lb);
	} else {
		void *block;
		char *image = image_alloc(a->rtype, a->rcount, &block);
		rc = image ? fold_run(&f, h->n, 0, a->rcount, image) : MPI_ERR_NO_MEM;
		if (image)
			memcpy(own, block, span);
		scratch_put(block);
		to = own;
	}
	cells_complete(h, k);
	deliver(a, a->rbuf, to - a->rtype->true_lb, a->rcount);
	return rc;
}

/* Two members, contiguous elements: each combines for itself. */
static void pair_combine(struct coll_home *h, uint64_t k, const struct coll_args *a)
{
	char *own = cells_payload(h, h->rank, cells_header(h, h->rank, k));
	char *other = cells_payload(h, 1 - h->rank, cells_header(h, 1 - h->rank, k));
	op_combine(a->op, h->rank ? other : own, h->rank ? own : other, a->rbuf, a->rcount,
		   a->rtype);
}

static int allreduce_small(struct coll_home *h, const struct coll_args *a, size_t span)
{
	uint64_t k = cells_begin(h);
	char *own = deposit(h, k, a, span);
	int rc = MPI_SUCCESS;
	if (h->n == 2) {
		exchange(h, k);
		if (LIKELY(a->rtype->contiguous)) {
			pair_combine(h, k, a);
		} else {
			struct fold f;
			fold_init(&f, h, k, a);
			rc = fold_deliver(&f, a, 2, 0, a->rcount, a->rbuf);
		}
	} else {
		cells_publish(h, k);
		if (cells_arrive(h, k)) {
			rc = combine(h, k, a, span, own);
		} else {
			const char *result = h->cells[0]->result;
			if (span > COLL_RESULT_SMALL) {
				int who = cells_completer(h);
				result = cells_payload(h, who, cells_deposit_of(h, who, k));
			}
			deliver(a, a->rbuf, result - a->rtype->true_lb, a->rcount);
		}
	}
	cells_all_done(h, k - 1);
	cells_finish(h, k);
	return rc;
}

/* ---- large: parts ---- */

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

/* After all deposits have come. */
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
	f.own = input(a);
	f.own_in_out = out == f.own;
	return fold_run(&f, h->n, first, coll_part(a->rcount, h->n, h->rank + 1) - first, out);
}

/* Reads the other members' parts to out as they come to be ready. */
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
	cells_point(h, k, input(a) + t->true_lb, coll_span(t, a->rcount), (uintptr_t)part);
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
	f.own = input(a);
	cells_point(h, k, f.own + a->rtype->true_lb, coll_span(a->rtype, a->rcount), 0);
	cells_publish_ring(h, k);
	if (!coll_in_place(a))
		rc = fold_deliver(&f, a, 2, 0, a->rcount, a->rbuf);
	else if ((image = image_alloc(a->rtype, a->rcount, &block)))
		rc = fold_run(&f, 2, 0, a->rcount, image);
	else
		rc = MPI_ERR_NO_MEM;
	cells_finish_ring(h, k);
	cells_wait_all(h, cells_done(k));
	cells_all_done(h, k);
	if (image)
		deliver(a, a->rbuf, image, a->rcount);
	scratch_put(block);
	return rc;
}

static int allreduce_large(struct coll_home *h, const struct coll_args *a, bool either,
			   struct way_clock *clock)
{
	uint64_t k = cells_begin(h);
	size_t span = coll_span(a->rtype, a->rcount);
	void *block = NULL;
	char *out = a->rtype->contiguous ? a->rbuf : image_alloc(a->rtype, a->rcount, &block);
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
		deliver(a, a->rbuf, out, a->rcount);
	scratch_put(block);
	return rc ? rc : part ? part : rest;
}

/* ---- large: in pieces through the cells ---- */

bool cells_reduce_in_pieces(const struct coll_args *a)
{
	return a->comm->size > 2 && coll_span(a->rtype, 1) <= COLL_PIECE_REDUCE;
}

/* Combines this member's part of piece k, to out (NULL: nowhere), own elements from the user's
 * buffer, mine. The result also goes to the place that this part has in its cell. */
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
	char *part = out ? out + skip : image_alloc(t, n, &block);
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
	const char *mine = input(a) + skip;
	char *out = NULL, *cell = cells_room(h, k, coll_span(t, count));
	int rc = MPI_SUCCESS;
	way_clock_start(clock);
	deposit_others(h, t, mine, cell, count);
	way_clock_stop(clock);
	if (says)
		leader_says(h, k, says);
	cells_publish_ring(h, k);
	if (root < 0 || root == h->rank) {
		out = t->contiguous ? (char *)a->rbuf + skip : image_alloc(t, count, &block);
		rc = out ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	}
	/* also who has no element to combine: all have come means that all are done with k - 1 */
	cells_wait_deposits(h, k, h->n);
	if (says)
		leader_heard(h, k, says);
	int part = combine_part(h, k, a, mine, cell, count, out, clock);
	cells_stage_ring(h, k * COLL_STAGES + 1);
	if (out)
		collect_parts(h, k, a, count, out, clock);
	cells_finish_ring(h, k);
	cells_all_done(h, k - 1);
	if (block)
		deliver(a, (char *)a->rbuf + skip, out, count);
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

int cells_allreduce(struct coll_home *h, const struct coll_args *a)
{
	size_t span = coll_span(a->rtype, a->rcount);
	if (LIKELY(span <= cells_inline(h)))
		return allreduce_small(h, a, span);
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

static int reduce_small(struct coll_home *h, const struct coll_args *a, size_t span)
{
	uint64_t k = cells_begin(h);
	if (h->rank != a->root) {
		deposit(h, k, a, span);
		cells_publish_ring(h, k);
		cells_finish(h, k);
		return MPI_SUCCESS;
	}
	struct fold f;
	fold_init(&f, h, k, a);
	f.own = input(a);
	f.own_in_out = coll_in_place(a);
	int rc = fold_deliver(&f, a, h->n, 0, a->rcount, a->rbuf);
	cells_finish_ring(h, k);
	return rc;
}

/* The root alone: with two members, and while parts cost more waiting than they save work. */
static int reduce_alone(struct coll_home *h, const struct coll_args *a)
{
	uint64_t k = cells_begin(h);
	int rc = MPI_SUCCESS;
	if (h->rank == a->root) {
		struct fold f;
		fold_init(&f, h, k, a);
		f.own = input(a);
		f.own_in_out = coll_in_place(a);
		rc = fold_deliver(&f, a, h->n, 0, a->rcount, a->rbuf);
		cells_finish_ring(h, k);
	} else {
		cells_point(h, k, input(a) + a->rtype->true_lb, coll_span(a->rtype, a->rcount), 0);
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
		out = image_alloc(t, a->rcount, &block);
	else
		out = image_alloc(t, mine, &block) - (ptrdiff_t)first * t->extent;
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
		deliver(a, a->rbuf, out, a->rcount);
	scratch_put(block);
	return rc;
}

int cells_reduce(struct coll_home *h, const struct coll_args *a)
{
	size_t span = coll_span(a->rtype, a->rcount);
	if (span <= cells_inline(h))
		return reduce_small(h, a, span);
	struct way_clock clock = {0};
	if (cells_reduce_in_pieces(a) &&
	    !(either_way(h, a, span) && h->reduce_order[way_size(span)].way == WAY_SINGLE))
		return reduce_pieces(h, a, a->root, false, &clock);
	return h->n == 2 || span <= REDUCE_PARTS ? reduce_alone(h, a) : reduce_large(h, a);
}

/* ---- a range for each member ---- */

/* Deposits the whole vector, combines [first, first + count) of members [0, hi) to the user's
 * buffer. A large vector stays in place until all are done with it. */
static int fold_range(struct coll_home *h, uint64_t k, const struct coll_args *a, size_t vector,
		      int hi, size_t first, size_t count, bool full)
{
	const struct datatype *t = a->rtype;
	size_t span = coll_span(t, vector);
	struct fold f;
	fold_init(&f, h, k, a);
	if (span <= cells_inline(h)) {
		deposit(h, k, a, span);
		if (full)
			cells_publish(h, k);
		else
			cells_publish_ring(h, k);
		if (full && cells_arrive(h, k))
			cells_complete(h, k);
		int rc = fold_deliver(&f, a, hi, first, count, a->rbuf);
		cells_finish_ring(h, k);
		return rc;
	}
	void *block;
	char *image = image_alloc(t, count, &block);
	f.own = input(a);
	cells_point(h, k, f.own + t->true_lb, span, 0);
	cells_publish_ring(h, k);
	int rc = image ? fold_run(&f, hi, first, count, image - (ptrdiff_t)first * t->extent)
		       : MPI_ERR_NO_MEM;
	cells_finish_ring(h, k);
	cells_wait_all(h, cells_done(k));
	cells_all_done(h, k);
	if (image && hi)
		deliver(a, a->rbuf, image, count);
	scratch_put(block);
	return rc;
}

int cells_reduce_scatter(struct coll_home *h, const struct coll_args *a)
{
	size_t vector = 0, first = 0, count = 0;
	for (int i = 0; i < h->n; i++) {
		size_t c = a->rcounts ? (size_t)a->rcounts[i] : a->rcount;
		if (i == h->rank) {
			first = vector;
			count = c;
		}
		vector += c;
	}
	return fold_range(h, cells_begin(h), a, vector, h->n, first, count, true);
}

int cells_scan(struct coll_home *h, const struct coll_args *a)
{
	int hi = a->kind == COLL_SCAN ? h->rank + 1 : h->rank;
	return fold_range(h, cells_begin(h), a, a->rcount, hi, 0, a->rcount, false);
}
