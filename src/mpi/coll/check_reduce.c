/* SPDX-License-Identifier: BSD-3-Clause */
/* Argument checks of reductions. */
#include "mpi/coll/check.h"

static int begin(struct coll_args *a, coll_kind_t kind, const void *sbuf, void *rbuf,
		 MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct comm *c = comm_of(comm);
	*a = (struct coll_args){.kind = kind, .sbuf = sbuf, .rbuf = rbuf};
	if (!comm_ok(c))
		return MPI_ERR_COMM;
	a->comm = c;
	a->rtype = datatype_of(type);
	a->op = op_of(op);
	if (!op_ok(a->op))
		return MPI_ERR_OP;
	if (!datatype_ok(a->rtype) || !a->rtype->committed)
		return MPI_ERR_TYPE;
	return op_check(a->op, a->rtype) ? MPI_ERR_OP : MPI_SUCCESS;
}

/* Both buffers significant here: present, and not the same unless one says MPI_IN_PLACE. */
static int check_both(const struct coll_args *a, const void *sbuf, const void *rbuf, size_t total)
{
	int some = total > 0;
	if (rbuf == MPI_IN_PLACE || (sbuf == MPI_IN_PLACE && a->comm->remote))
		return MPI_ERR_BUFFER;
	if (sbuf == rbuf && sbuf != MPI_BOTTOM && total > 0)
		return MPI_ERR_BUFFER;
	int rc = check_buffer(rbuf, some, a->rtype);
	return rc || sbuf == MPI_IN_PLACE ? rc : check_buffer(sbuf, some, a->rtype);
}

int check_coll_reduce(struct coll_args *a, const void *sbuf, void *rbuf, int count,
		      MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
	int rc = begin(a, COLL_REDUCE, sbuf, rbuf, type, op, comm);
	if (rc)
		return rc;
	const struct comm *c = a->comm;
	a->root = root;
	a->rcount = (size_t)count;
	if (c->remote) {
		if (root == MPI_PROC_NULL)
			return MPI_SUCCESS;
		if (root != MPI_ROOT && (root < 0 || root >= c->peers))
			return MPI_ERR_ROOT;
		return check_buffer(root == MPI_ROOT ? rbuf : sbuf, count, a->rtype);
	}
	rc = check_root(root, c);
	if (rc)
		return rc;
	if (count < 0)
		return MPI_ERR_COUNT;
	if (root != c->rank)
		return sbuf == MPI_IN_PLACE ? MPI_ERR_ARG : check_buffer(sbuf, count, a->rtype);
	rc = check_both(a, sbuf, rbuf, (size_t)count);
	return rc == MPI_ERR_BUFFER && (rbuf == MPI_IN_PLACE || sbuf == rbuf) ? MPI_ERR_ARG : rc;
}

int check_coll_vector(struct coll_args *a, coll_kind_t kind, const void *sbuf, void *rbuf,
		      int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	int rc = begin(a, kind, sbuf, rbuf, type, op, comm);
	if (rc)
		return rc;
	if ((kind == COLL_SCAN || kind == COLL_EXSCAN) && a->comm->remote)
		return MPI_ERR_COMM;
	if (count < 0)
		return MPI_ERR_COUNT;
	a->rcount = (size_t)count;
	return check_both(a, sbuf, rbuf, (size_t)count);
}

int check_coll_reduce_scatter(struct coll_args *a, const void *sbuf, void *rbuf, const int *counts,
			      MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	size_t total = 0;
	int rc = begin(a, COLL_REDUCE_SCATTER, sbuf, rbuf, type, op, comm);
	if (rc)
		return rc;
	if (!counts)
		return MPI_ERR_COUNT;
	for (int i = 0; i < a->comm->size; i++) {
		if (counts[i] < 0)
			return MPI_ERR_COUNT;
		total += (size_t)counts[i];
	}
	a->rcounts = counts;
	if (rbuf == MPI_IN_PLACE || (sbuf == rbuf && sbuf != MPI_BOTTOM && total))
		return MPI_ERR_BUFFER;
	if (sbuf != MPI_IN_PLACE)
		rc = check_buffer(sbuf, total > 0, a->rtype);
	return rc ? rc : check_buffer(rbuf, counts[a->comm->rank] > 0, a->rtype);
}
