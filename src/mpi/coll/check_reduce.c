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
	/* whether the operation has a meaning for the type comes first, as in Open MPI */
	if (!datatype_ok(a->rtype))
		return a->op->user ? MPI_ERR_TYPE : MPI_ERR_OP;
	if (op_check(a->op, a->rtype))
		return MPI_ERR_OP;
	return a->rtype->committed ? MPI_SUCCESS : MPI_ERR_TYPE;
}

/* The same buffer for both is an error only where Open MPI takes it for one. Elsewhere it works as
 * MPI_IN_PLACE, as programs that do so find with Open MPI. */
static void same_is_in_place(struct coll_args *a)
{
	if (a->sbuf == a->rbuf && a->sbuf != MPI_BOTTOM)
		a->sbuf = MPI_IN_PLACE;
}

static int check_buffers(const struct coll_args *a, size_t sent, size_t received)
{
	int rc = check_buffer(a->rbuf, received > 0, a->rtype);
	return rc || a->sbuf == MPI_IN_PLACE ? rc : check_buffer(a->sbuf, sent > 0, a->rtype);
}

int check_coll_reduce(struct coll_args *a, const void *sbuf, void *rbuf, MPI_Count count,
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
	if (rbuf == MPI_IN_PLACE || (sbuf == rbuf && count))
		return MPI_ERR_ARG;
	return check_buffers(a, (size_t)count, (size_t)count);
}

int check_coll_vector(struct coll_args *a, coll_kind_t kind, const void *sbuf, void *rbuf,
		      MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	int rc = begin(a, kind, sbuf, rbuf, type, op, comm);
	if (rc)
		return rc;
	if ((kind == COLL_SCAN || kind == COLL_EXSCAN) && a->comm->remote)
		return MPI_ERR_COMM;
	if (count < 0)
		return MPI_ERR_COUNT;
	a->rcount = (size_t)count;
	if (kind == COLL_ALLREDUCE && sbuf == rbuf && sbuf != MPI_BOTTOM && count > 1)
		return MPI_ERR_BUFFER;
	if (rbuf == MPI_IN_PLACE || (sbuf == MPI_IN_PLACE && a->comm->remote))
		return kind == COLL_ALLREDUCE ? MPI_ERR_BUFFER : MPI_ERR_ARG;
	same_is_in_place(a);
	size_t members = kind == COLL_REDUCE_SCATTER ? (size_t)a->comm->size : 1;
	return check_buffers(a, (size_t)count * members, (size_t)count);
}

int check_coll_reduce_scatter_of(bool wide, struct coll_args *a, const void *sbuf, void *rbuf,
				 const void *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	size_t total = 0;
	int rc = begin(a, COLL_REDUCE_SCATTER, sbuf, rbuf, type, op, comm);
	a->wide = wide;
	if (rc)
		return rc;
	if (!counts)
		return MPI_ERR_COUNT;
	for (int i = 0; i < a->comm->size; i++) {
		if (coll_number(a, counts, i) < 0)
			return MPI_ERR_COUNT;
		total |= (size_t)coll_number(a, counts, i);
	}
	a->rcounts = counts;
	if (rbuf == MPI_IN_PLACE || (sbuf == MPI_IN_PLACE && a->comm->remote))
		return MPI_ERR_ARG;
	same_is_in_place(a);
	return check_buffers(a, total, coll_share(a, a->comm->rank));
}
