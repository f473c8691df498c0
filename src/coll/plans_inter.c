/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans between the two groups of an intercommunicator (MPI-3.1, 5.2.2): ranks are those of the
 * remote group, except in the steps among ourselves. Rank 0 of each group speaks for it. */
#include "coll/plans.h"

#include "coll/cells/cells.h"

static struct coll_block nothing(void)
{
	return (struct coll_block){NULL, 0, (struct datatype *)MPI_BYTE};
}

static void inter_barrier(struct schedule *s, const struct coll_args *a)
{
	schedule_among_local(s, true);
	plan_barrier(s, a);
	if (a->comm->rank == 0) {
		schedule_among_local(s, false);
		schedule_send(s, nothing(), 0);
		schedule_recv(s, nothing(), 0);
		schedule_round(s);
		schedule_among_local(s, true);
	}
	plan_tree_down(s, a->comm->size, a->comm->rank, 0, nothing());
}

/* Rank 0 has b from the other group; all of this one get it. */
static void spread(struct schedule *s, const struct coll_args *a, struct coll_block b)
{
	schedule_round(s);
	schedule_among_local(s, true);
	plan_tree_down(s, a->comm->size, a->comm->rank, 0, b);
}

static void inter_bcast(struct schedule *s, const struct coll_args *a)
{
	struct coll_block b = coll_recv_one(a);
	if (a->root == MPI_PROC_NULL)
		return;
	if (a->root == MPI_ROOT) {
		schedule_send(s, b, 0);
		return;
	}
	if (a->comm->rank == 0)
		schedule_recv(s, b, a->root);
	spread(s, a, b);
}

static void inter_gather(struct schedule *s, const struct coll_args *a)
{
	if (a->root == MPI_ROOT)
		for (int i = 0; i < a->comm->peers; i++)
			schedule_recv(s, coll_recv_block(a, i), i);
	else if (a->root != MPI_PROC_NULL)
		schedule_send(s, coll_send_one(a), a->root);
}

static void inter_scatter(struct schedule *s, const struct coll_args *a)
{
	if (a->root == MPI_ROOT)
		for (int i = 0; i < a->comm->peers; i++)
			schedule_send(s, coll_send_block(a, i), i);
	else if (a->root != MPI_PROC_NULL)
		schedule_recv(s, coll_recv_one(a), a->root);
}

static void inter_exchange(struct schedule *s, const struct coll_args *a)
{
	bool one = a->kind == COLL_ALLGATHER;
	for (int i = 0; i < a->comm->peers; i++)
		schedule_recv(s, coll_recv_block(a, i), i);
	for (int i = 0; i < a->comm->peers; i++)
		schedule_send(s, one ? coll_send_one(a) : coll_send_block(a, i), i);
}

/* This group's combination, at rank 0. */
static struct coll_block inter_combine(struct schedule *s, const struct coll_args *a, size_t count)
{
	struct coll_block in = {(char *)(uintptr_t)a->sbuf, count, a->rtype};
	struct coll_block acc = {schedule_temp(s, a->rtype, count), count, a->rtype};
	char *spare = schedule_temp(s, a->rtype, count);
	schedule_copy(s, acc, in);
	schedule_among_local(s, true);
	acc.buf = plan_tree_up(s, a->comm->size, a->comm->rank, a->op, acc, spare);
	schedule_among_local(s, false);
	return acc;
}

static void inter_reduce(struct schedule *s, const struct coll_args *a)
{
	if (a->root == MPI_ROOT) {
		schedule_recv(s, coll_recv_one(a), 0);
	} else if (a->root != MPI_PROC_NULL) {
		struct coll_block result = inter_combine(s, a, a->rcount);
		if (a->comm->rank == 0)
			schedule_send(s, result, a->root);
	}
}

static void inter_allreduce(struct schedule *s, const struct coll_args *a)
{
	struct coll_block result = inter_combine(s, a, a->rcount), b = coll_recv_one(a);
	if (a->comm->rank == 0) {
		schedule_recv(s, b, 0);
		schedule_send(s, result, 0);
	}
	spread(s, a, b);
}

static void inter_reduce_scatter(struct schedule *s, const struct coll_args *a)
{
	int n = a->comm->size, rank = a->comm->rank;
	size_t total = 0, at = 0;
	for (int i = 0; i < n; i++)
		total += coll_share(a, i);
	struct coll_block result = inter_combine(s, a, total);
	struct coll_block own = {a->rbuf, coll_share(a, rank), a->rtype};
	if (rank) {
		schedule_round(s);
		schedule_among_local(s, true);
		schedule_recv(s, own, 0);
		return;
	}
	struct coll_block theirs = {schedule_temp(s, a->rtype, total), total, a->rtype};
	schedule_recv(s, theirs, 0);
	schedule_send(s, result, 0);
	schedule_round(s);
	schedule_among_local(s, true);
	for (int i = 0; i < n; i++) {
		struct coll_block b = {theirs.buf + (ptrdiff_t)at * a->rtype->extent,
				       coll_share(a, i), a->rtype};
		if (i)
			schedule_send(s, b, i);
		else
			schedule_copy(s, own, b);
		at += b.count;
	}
}

void plan_inter(struct schedule *s, const struct coll_args *a)
{
	switch (a->kind) {
	case COLL_BARRIER:
		inter_barrier(s, a);
		break;
	case COLL_BCAST:
		inter_bcast(s, a);
		break;
	case COLL_GATHER:
		inter_gather(s, a);
		break;
	case COLL_SCATTER:
		inter_scatter(s, a);
		break;
	case COLL_ALLGATHER:
	case COLL_ALLTOALL:
		inter_exchange(s, a);
		break;
	case COLL_REDUCE:
		inter_reduce(s, a);
		break;
	case COLL_ALLREDUCE:
		inter_allreduce(s, a);
		break;
	case COLL_REDUCE_SCATTER:
		inter_reduce_scatter(s, a);
		break;
	default: /* scans are for one group: checked above */
		schedule_fail(s, MPI_ERR_COMM);
	}
}
