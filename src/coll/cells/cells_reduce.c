/* SPDX-License-Identifier: BSD-3-Clause */
/* Barrier and reductions over shared cells.
 *
 * Small: everybody deposits, whoever comes last combines all deposits and publishes the result.
 * Two members just look at each other's deposit. Large: cells_reduce_large.c.
 * All ways combine in the tree of coll.h. While deposits are combined in place there is no safe
 * point: they are waited for beforehand.
 *
 * What travels is the memory that the elements span, gaps included, because reduction functions
 * see elements in their own layout; only data reaches the user's buffer.
 */
#include "coll/cells/cells.h"

#include "coll/cells/cells_fold.h"
#include "coll/coll.h"
#include "coll/cells/scratch.h"

/* This process's elements into its cell; to be published. */
static void deposit(struct coll_home *h, uint64_t k, const struct coll_args *a, size_t span)
{
	char *room = cells_room(h, k, span);
	memcpy(room, coll_input(a) + a->rtype->true_lb, span);
}

/* ---- barrier ---- */

static void exchange(struct coll_home *h, uint64_t k)
{
	int peer = 1 - h->rank;
	atomic_exchange_explicit(&cells_header(h, h->rank, k)->seq, k, memory_order_seq_cst);
	cells_prefetch(h, k);
	mailbox_wake(h->mail[peer]);
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

/* The last one combines. The result goes beside the word that announces it, or takes the place of
 * this process's deposit. */
static int combine(struct coll_home *h, uint64_t k, const struct coll_args *a, size_t span)
{
	char *own = cells_payload(h, h->rank, cells_header(h, h->rank, k));
	struct fold f;
	fold_init(&f, h, k, a);
	char *to = h->cells[0]->result;
	int rc;
	if (span <= COLL_RESULT_SMALL) {
		rc = fold_run(&f, h->n, 0, a->rcount, to - a->rtype->true_lb);
	} else {
		void *block;
		char *image = fold_image(a->rtype, a->rcount, &block);
		rc = image ? fold_run(&f, h->n, 0, a->rcount, image) : MPI_ERR_NO_MEM;
		if (image)
			memcpy(own, block, span);
		scratch_put(block);
		to = own;
	}
	cells_complete(h, k);
	fold_give(a, a->rbuf, to - a->rtype->true_lb, a->rcount);
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
	deposit(h, k, a, span);
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
			rc = combine(h, k, a, span);
		} else {
			const char *result = h->cells[0]->result;
			if (span > COLL_RESULT_SMALL) {
				int who = cells_completer(h);
				result = cells_payload(h, who, cells_deposit_of(h, who, k));
			}
			fold_give(a, a->rbuf, result - a->rtype->true_lb, a->rcount);
		}
	}
	cells_all_done(h, k - 1);
	cells_finish(h, k);
	return rc;
}

int cells_allreduce(struct coll_home *h, const struct coll_args *a)
{
	size_t span = coll_span(a->rtype, a->rcount);
	if (LIKELY(span <= cells_inline(h)))
		return allreduce_small(h, a, span);
	return cells_allreduce_large(h, a);
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
	f.own = coll_input(a);
	f.own_in_out = coll_in_place(a);
	int rc = fold_deliver(&f, a, h->n, 0, a->rcount, a->rbuf);
	cells_finish_ring(h, k);
	return rc;
}

int cells_reduce(struct coll_home *h, const struct coll_args *a)
{
	size_t span = coll_span(a->rtype, a->rcount);
	return span <= cells_inline(h) ? reduce_small(h, a, span) : cells_reduce_large(h, a);
}

/* ---- a range for each member ---- */

/* Deposits the whole vector, combines [first, first + count) of members [0, hi) to the user's
 * buffer. A large vector stays in place until all are done with it. */
static int deposit_and_fold(struct coll_home *h, uint64_t k, const struct coll_args *a,
			    size_t vector, int hi, size_t first, size_t count, bool full)
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
	char *image = fold_image(t, count, &block);
	f.own = coll_input(a);
	cells_point(h, k, f.own + t->true_lb, span, 0);
	cells_publish_ring(h, k);
	int rc = image ? fold_run(&f, hi, first, count, image - (ptrdiff_t)first * t->extent)
		       : MPI_ERR_NO_MEM;
	cells_finish_ring(h, k);
	cells_wait_all(h, cells_done(k));
	cells_all_done(h, k);
	if (image && hi)
		fold_give(a, a->rbuf, image, count);
	scratch_put(block);
	return rc;
}

int cells_reduce_scatter(struct coll_home *h, const struct coll_args *a)
{
	size_t vector = 0, first = 0, count = 0;
	for (int i = 0; i < h->n; i++) {
		size_t c = coll_share(a, i);
		if (i == h->rank) {
			first = vector;
			count = c;
		}
		vector += c;
	}
	return deposit_and_fold(h, cells_begin(h), a, vector, h->n, first, count, true);
}

int cells_scan(struct coll_home *h, const struct coll_args *a)
{
	int hi = a->kind == COLL_SCAN ? h->rank + 1 : h->rank;
	return deposit_and_fold(h, cells_begin(h), a, a->rcount, hi, 0, a->rcount, false);
}
