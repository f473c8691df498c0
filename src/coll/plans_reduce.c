/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of reductions. A reduction of two leaves its result in the place of the right operand, so
 * accumulator and receive buffer change roles when the partner is on the right. */
#include "coll/plans.h"

#include "coll/cells/cells.h"

/* From here on vectors are combined in parts. */
enum { PARTS_BYTES = 65536 };

static struct coll_block elements(const struct coll_args *a, const void *at)
{
	return (struct coll_block){(char *)(uintptr_t)at, a->rcount, a->rtype};
}

static struct coll_block input(const struct coll_args *a)
{
	return elements(a, coll_in_place(a) ? a->rbuf : a->sbuf);
}

static struct coll_block slice(struct coll_block b, size_t first, size_t count)
{
	return (struct coll_block){b.buf + (ptrdiff_t)first * b.type->extent, count, b.type};
}

static struct coll_block temp(struct schedule *s, const struct coll_args *a, size_t count)
{
	return (struct coll_block){schedule_temp(s, a->rtype, count), count, a->rtype};
}

char *plan_tree_up(struct schedule *s, int n, int rank, struct op *op, struct coll_block acc,
		   char *spare)
{
	struct coll_block other = {spare, acc.count, acc.type};
	for (int mask = 1; mask < n; mask *= 2) {
		if (rank & mask) {
			schedule_send(s, acc, rank - mask);
			schedule_round(s);
			return acc.buf;
		}
		if (rank + mask >= n)
			continue;
		schedule_recv(s, other, rank + mask);
		schedule_round(s);
		schedule_reduce(s, op, acc.buf, other);
		struct coll_block swap = acc;
		acc = other;
		other = swap;
	}
	return acc.buf;
}

/* Combines blocks [lo, hi) that lie one after another; the result is where block hi - 1 is. */
static struct coll_block combine(struct schedule *s, struct op *op, const struct coll_block *b,
				 int lo, int hi)
{
	if (hi - lo == 1)
		return b[lo];
	int mid = lo + coll_split(hi - lo);
	struct coll_block left = combine(s, op, b, lo, mid), right = combine(s, op, b, mid, hi);
	schedule_reduce(s, op, left.buf, right);
	return right;
}

/* Everybody sends each member that member's slice of the vector; the slice that is this one's,
 * combined. counts: of the slices. */
static struct coll_block exchange_slices(struct schedule *s, const struct coll_args *a,
					 const size_t *first)
{
	int n = a->comm->size, rank = a->comm->rank;
	size_t mine = first[rank + 1] - first[rank];
	struct coll_block all = input(a);
	struct coll_block *b = heap_alloc((size_t)n * sizeof(*b));
	if (!b) {
		schedule_fail(s, MPI_ERR_NO_MEM);
		return (struct coll_block){NULL, 0, a->rtype};
	}
	for (int i = 0; i < n; i++)
		b[i] = temp(s, a, mine);
	schedule_copy(s, b[rank], slice(all, first[rank], mine));
	for (int i = 1; i < n; i++)
		schedule_recv(s, b[(rank - i + n) % n], (rank - i + n) % n);
	for (int i = 1; i < n; i++) {
		int to = (rank + i) % n;
		schedule_send(s, slice(all, first[to], first[to + 1] - first[to]), to);
	}
	schedule_round(s);
	struct coll_block result = combine(s, a->op, b, 0, n);
	heap_free(b);
	return result;
}

static size_t *even_slices(const struct coll_args *a)
{
	int n = a->comm->size;
	size_t *first = heap_alloc(((size_t)n + 1) * sizeof(*first));
	for (int i = 0; first && i <= n; i++)
		first[i] = coll_part(a->rcount, n, i);
	return first;
}

static bool by_parts(const struct coll_args *a)
{
	return a->comm->size > 2 && a->rcount >= (size_t)a->comm->size &&
	       coll_span(a->rtype, a->rcount) >= PARTS_BYTES;
}

static void reduce_parts(struct schedule *s, const struct coll_args *a)
{
	int n = a->comm->size, rank = a->comm->rank;
	size_t *first = even_slices(a);
	if (!first) {
		schedule_fail(s, MPI_ERR_NO_MEM);
		return;
	}
	struct coll_block part = exchange_slices(s, a, first);
	if (rank != a->root) {
		schedule_send(s, part, a->root);
	} else {
		struct coll_block all = elements(a, a->rbuf);
		schedule_copy(s, slice(all, first[rank], part.count), part);
		for (int i = 0; i < n; i++)
			if (i != rank)
				schedule_recv(s, slice(all, first[i], first[i + 1] - first[i]), i);
	}
	heap_free(first);
}

/* The tree hangs from rank 0 whoever the root is. */
void plan_reduce(struct schedule *s, const struct coll_args *a)
{
	int n = a->comm->size, rank = a->comm->rank;
	if (by_parts(a)) {
		reduce_parts(s, a);
		return;
	}
	struct coll_block acc = temp(s, a, a->rcount), other = temp(s, a, a->rcount);
	schedule_copy(s, acc, input(a));
	char *result = plan_tree_up(s, n, rank, a->op, acc, other.buf);
	if (rank == 0 && a->root == 0)
		schedule_copy(s, elements(a, a->rbuf), elements(a, result));
	else if (rank == 0)
		schedule_send(s, elements(a, result), a->root);
	else if (rank == a->root)
		schedule_recv(s, elements(a, a->rbuf), 0);
}

static void allreduce_parts(struct schedule *s, const struct coll_args *a)
{
	int n = a->comm->size, rank = a->comm->rank;
	size_t *first = even_slices(a);
	if (!first) {
		schedule_fail(s, MPI_ERR_NO_MEM);
		return;
	}
	struct coll_block all = elements(a, a->rbuf), part = exchange_slices(s, a, first);
	schedule_copy(s, slice(all, first[rank], part.count), part);
	for (int i = 1; i < n; i++) {
		int from = (rank + i) % n;
		schedule_recv(s, slice(all, first[from], first[from + 1] - first[from]), from);
	}
	for (int i = 1; i < n; i++)
		schedule_send(s, part, (rank - i + n) % n);
	heap_free(first);
}

/* Partners at distance 1, 2, 4, …: after each round everybody of an aligned group has the group's
 * result. */
static void allreduce_doubling(struct schedule *s, const struct coll_args *a)
{
	int n = a->comm->size, rank = a->comm->rank;
	struct coll_block acc = temp(s, a, a->rcount), other = temp(s, a, a->rcount);
	schedule_copy(s, acc, input(a));
	for (int mask = 1; mask < n; mask *= 2) {
		int peer = rank ^ mask;
		schedule_recv(s, other, peer);
		schedule_send(s, acc, peer);
		schedule_round(s);
		if (peer < rank) {
			schedule_reduce(s, a->op, other.buf, acc);
			continue;
		}
		schedule_reduce(s, a->op, acc.buf, other);
		struct coll_block swap = acc;
		acc = other;
		other = swap;
	}
	schedule_copy(s, elements(a, a->rbuf), acc);
}

void plan_allreduce(struct schedule *s, const struct coll_args *a)
{
	int n = a->comm->size, rank = a->comm->rank;
	if (by_parts(a)) {
		allreduce_parts(s, a);
		return;
	}
	if ((n & (n - 1)) == 0) {
		allreduce_doubling(s, a);
		return;
	}
	struct coll_block acc = temp(s, a, a->rcount), other = temp(s, a, a->rcount);
	schedule_copy(s, acc, input(a));
	char *result = plan_tree_up(s, n, rank, a->op, acc, other.buf);
	if (rank == 0)
		schedule_copy(s, elements(a, a->rbuf), elements(a, result));
	plan_tree_down(s, n, rank, 0, elements(a, a->rbuf));
}

void plan_reduce_scatter(struct schedule *s, const struct coll_args *a)
{
	int n = a->comm->size;
	size_t *first = heap_alloc(((size_t)n + 1) * sizeof(*first));
	if (!first) {
		schedule_fail(s, MPI_ERR_NO_MEM);
		return;
	}
	first[0] = 0;
	for (int i = 0; i < n; i++)
		first[i + 1] = first[i] + coll_share(a, i);
	struct coll_block part = exchange_slices(s, a, first);
	schedule_copy(s, (struct coll_block){a->rbuf, part.count, a->rtype}, part);
	heap_free(first);
}

/* Each member keeps the combination of its aligned group, for others, and that of the members
 * before it in the group, for itself (with its own elements when inclusive). */
void plan_scan(struct schedule *s, const struct coll_args *a)
{
	int n = a->comm->size, rank = a->comm->rank;
	bool have = a->kind == COLL_SCAN;
	struct coll_block group = temp(s, a, a->rcount), other = temp(s, a, a->rcount);
	struct coll_block before = temp(s, a, a->rcount);
	schedule_copy(s, group, input(a));
	if (have)
		schedule_copy(s, before, input(a));
	for (int mask = 1; mask < n; mask *= 2) {
		int peer = rank ^ mask;
		if (peer >= n)
			continue;
		schedule_recv(s, other, peer);
		schedule_send(s, group, peer);
		schedule_round(s);
		if (peer > rank) {
			schedule_reduce(s, a->op, group.buf, other);
			struct coll_block swap = group;
			group = other;
			other = swap;
			continue;
		}
		if (have)
			schedule_reduce(s, a->op, other.buf, before);
		else
			schedule_copy(s, before, other);
		have = true;
		schedule_reduce(s, a->op, other.buf, group);
	}
	if (have)
		schedule_copy(s, elements(a, a->rbuf), before);
}
