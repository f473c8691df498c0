/* SPDX-License-Identifier: BSD-3-Clause */
/* Barrier and reductions over shared cells.
 *
 * Small: everybody deposits, whoever comes last combines all deposits and publishes the result.
 * Two members just look at each other's deposit. Large: every member combines its own part of the
 * vector out of everybody's memory, and then reads the other parts where they were made.
 * All ways combine in the tree of coll.h. While deposits are combined in place there is no safe
 * point: they are waited for beforehand.
 *
 * What travels is the memory that the elements span, gaps included, because reduction functions
 * see elements in their own layout; only data reaches the user's buffer.
 */
#include "coll/cells.h"

#include "coll/coll.h"
#include "coll/scratch.h"

/* Bytes that are combined at once: partial results stay in the core's cache, and a system call
 * (some 2 us) is spread over enough of them. */
enum { FOLD_CHUNK = 65536, FOLD_STACK = 1024, REDUCE_PARTS = 65536 };

/* The combination of a range of elements of several members' deposits under k. Addresses of
 * elements are as in MPI: data begins true_lb after them. */
struct fold {
	struct coll_home *h;
	uint64_t k;
	struct op *op;
	struct datatype *type;
	const char *own;     /* this process's elements; NULL: its deposit in the cell */
	bool own_in_out;     /* they are where the result goes */
	bool swaps;	     /* a op b and b op a are the same bits */
	size_t first, count; /* the chunk at work */
	char *scratch;	     /* partial results, one a level, and a copy of own elements */
	size_t stride;
	const char *own_chunk;
	char stack[FOLD_STACK] __attribute__((aligned(CACHE_LINE)));
};

static char *fold_temp(struct fold *f, unsigned level)
{
	return f->scratch + level * f->stride - f->type->true_lb;
}

/* Where member's elements are, reading them into temp if they can't be used in place. */
static int fold_left(struct fold *f, int member, char *temp, const char **at)
{
	const struct datatype *t = f->type;
	ptrdiff_t skip = (ptrdiff_t)f->first * t->extent;
	if (member == f->h->rank && f->own_chunk) {
		*at = f->own_chunk;
		return MPI_SUCCESS;
	}
	struct coll_header *d = cells_header(f->h, member, f->k);
	if (!d->address) {
		*at = cells_payload(f->h, member, d) - t->true_lb + skip;
		return MPI_SUCCESS;
	}
	*at = temp;
	return cells_read(f->h, member, d->address + (uint64_t)skip, temp + t->true_lb,
			  coll_span(t, f->count));
}

static int fold_leaf(struct fold *f, int member, char *to)
{
	const char *at;
	int rc = fold_left(f, member, to, &at);
	if (at != to)
		memcpy(to + f->type->true_lb, at + f->type->true_lb, coll_span(f->type, f->count));
	return rc;
}

static int fold_tree(struct fold *f, int lo, int hi, char *to, unsigned level)
{
	if (hi - lo == 1)
		return fold_leaf(f, lo, to);
	/* own elements needn't be copied when the others can go where the result will be */
	if (hi - lo == 2 && hi - 1 == f->h->rank && f->swaps && f->own_chunk && !f->own_in_out) {
		int read = fold_leaf(f, lo, to);
		op_apply(f->op, f->own_chunk, to, f->count, f->type);
		return read;
	}
	int mid = lo + coll_split(hi - lo), rc;
	const char *left = fold_temp(f, level);
	if (mid - lo == 1)
		rc = fold_left(f, lo, fold_temp(f, level), &left);
	else
		rc = fold_tree(f, lo, mid, fold_temp(f, level), level + 1);
	int right = fold_tree(f, mid, hi, to, level + 1);
	op_apply(f->op, left, to, f->count, f->type);
	return rc ? rc : right;
}

/* Elements [first, first + count) of members [0, hi) to the same elements at out. */
static int fold_run(struct fold *f, int hi, size_t first, size_t count, char *out)
{
	const struct datatype *t = f->type;
	size_t span = coll_span(t, 1), whole = coll_span(t, count);
	size_t chunk = whole <= FOLD_CHUNK || !span ? count : 1 + FOLD_CHUNK / span;
	unsigned levels = hi > 1 ? 33 - (unsigned)__builtin_clz((unsigned)hi - 1) : 1;
	if (!count || hi < 1)
		return MPI_SUCCESS;
	chunk = chunk < count ? chunk : count;
	f->stride = ALIGN_UP(coll_span(t, chunk), CACHE_LINE);
	f->scratch = f->stack;
	if (levels * f->stride > sizeof(f->stack))
		f->scratch = scratch_get(levels * f->stride);
	if (!f->scratch)
		return MPI_ERR_NO_MEM;
	cells_wait_deposits(f->h, f->k, hi);
	int rc = MPI_SUCCESS;
	for (size_t done = 0; done < count && !rc; done += chunk) {
		f->first = first + done;
		f->count = chunk < count - done ? chunk : count - done;
		f->own_chunk = f->own ? f->own + (ptrdiff_t)f->first * t->extent : NULL;
		if (f->own_in_out && f->h->rank != hi - 1) {
			char *copy = fold_temp(f, levels - 1);
			memcpy(copy + t->true_lb, f->own_chunk + t->true_lb,
			       coll_span(t, f->count));
			f->own_chunk = copy;
		}
		rc = fold_tree(f, 0, hi, out + (ptrdiff_t)f->first * t->extent, 0);
	}
	if (f->scratch != f->stack)
		scratch_put(f->scratch);
	return rc;
}

/* Two operands: not products, which have several roundings for complex numbers, nor extremes,
 * which take one of two equals. */
static bool swaps(const struct op *op)
{
	return op == (struct op *)MPI_SUM || op == (struct op *)MPI_BXOR ||
	       op == (struct op *)MPI_BAND || op == (struct op *)MPI_BOR;
}

static void fold_init(struct fold *f, struct coll_home *h, uint64_t k, const struct coll_args *a)
{
	f->h = h;
	f->k = k;
	f->op = a->op;
	f->type = a->rtype;
	f->own = NULL;
	f->own_in_out = false;
	f->swaps = swaps(a->op);
}

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

/* Two members, contiguous elements: each takes the right operand and puts the left one on it. */
static void pair_combine(struct coll_home *h, uint64_t k, const struct coll_args *a, size_t span)
{
	char *own = cells_payload(h, h->rank, cells_header(h, h->rank, k));
	char *other = cells_payload(h, 1 - h->rank, cells_header(h, 1 - h->rank, k));
	memcpy(a->rbuf, h->rank ? own : other, span);
	op_apply(a->op, h->rank ? other : own, a->rbuf, a->rcount, a->rtype);
}

static int allreduce_small(struct coll_home *h, const struct coll_args *a, size_t span)
{
	uint64_t k = cells_begin(h);
	char *own = deposit(h, k, a, span);
	int rc = MPI_SUCCESS;
	if (h->n == 2) {
		exchange(h, k);
		if (LIKELY(a->rtype->contiguous)) {
			pair_combine(h, k, a, span);
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
static int gather_parts(struct coll_home *h, uint64_t k, const struct coll_args *a, char *out)
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
		rc = cells_read(h, member, d->offset,
				out + (ptrdiff_t)first * t->extent + t->true_lb,
				coll_span(t, count));
	}
	return rc;
}

/* A deposit of addresses for part-wise reduction: where the elements are, and where this member's
 * part of the result will be when its stage is 1. */
static void publish_parts(struct coll_home *h, uint64_t k, const struct coll_args *a, char *out)
{
	const struct datatype *t = a->rtype;
	size_t first = coll_part(a->rcount, h->n, h->rank);
	char *part = out + (ptrdiff_t)first * t->extent + t->true_lb;
	cells_point(h, k, input(a) + t->true_lb, coll_span(t, a->rcount), (uintptr_t)part);
	cells_publish_ring(h, k);
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

static int allreduce_large(struct coll_home *h, const struct coll_args *a)
{
	uint64_t k = cells_begin(h);
	void *block = NULL;
	char *out = a->rtype->contiguous ? a->rbuf : image_alloc(a->rtype, a->rcount, &block);
	int rc = out ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	if (!out) /* others still need this member's elements and its part: it spoils its own */
		out = a->rbuf;
	publish_parts(h, k, a, out);
	int part = fold_part(h, k, a, out);
	cells_stage_ring(h, k * COLL_STAGES + 1);
	int rest = gather_parts(h, k, a, out);
	cells_finish_ring(h, k);
	cells_wait_all(h, cells_done(k));
	cells_all_done(h, k);
	if (block)
		deliver(a, a->rbuf, out, a->rcount);
	scratch_put(block);
	return rc ? rc : part ? part : rest;
}

int cells_allreduce(struct coll_home *h, const struct coll_args *a)
{
	size_t span = coll_span(a->rtype, a->rcount);
	if (LIKELY(span <= cells_inline(h)))
		return allreduce_small(h, a, span);
	if (h->n == 2)
		return allreduce_twice(h, a);
	return allreduce_large(h, a);
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
	bool lacking = !block && !(root && t->contiguous);
	publish_parts(h, k, a, out);
	int rc = lacking ? MPI_ERR_NO_MEM : fold_part(h, k, a, out);
	cells_stage_ring(h, k * COLL_STAGES + 1);
	if (root && !lacking) {
		int rest = gather_parts(h, k, a, out);
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
