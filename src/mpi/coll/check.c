/* SPDX-License-Identifier: BSD-3-Clause */
/* Argument checks of operations that move data. */
#include "mpi/coll/check.h"

static int begin(struct coll_args *a, coll_kind_t kind, MPI_Comm comm)
{
	struct comm *c = comm_of(comm);
	*a = (struct coll_args){.kind = kind};
	if (!comm_ok(c))
		return MPI_ERR_COMM;
	a->comm = c;
	return MPI_SUCCESS;
}

static int check_any_root(int root, const struct comm *c)
{
	if (!c->remote)
		return check_root(root, c);
	return (root >= 0 && root < c->peers) || root == MPI_ROOT || root == MPI_PROC_NULL
		   ? MPI_SUCCESS
		   : MPI_ERR_ROOT;
}

/* In an intercommunicator a root of its own group marks itself; the others of that group take no
 * part, and those of the other group are like non-roots. */
static bool is_root(const struct coll_args *a)
{
	return a->comm->remote ? a->root == MPI_ROOT : a->root == a->comm->rank;
}
static bool is_leaf(const struct coll_args *a)
{
	return a->comm->remote ? a->root >= 0 : a->root != a->comm->rank;
}

static int check_one(const void *buf, MPI_Count count, MPI_Datatype type)
{
	return check_buffer(buf, count, datatype_of(type));
}

static int check_many(const struct coll_args *a, const void *buf, const void *counts,
		      const void *displs, MPI_Datatype type, int n)
{
	size_t total = 0;
	if (!displs)
		return MPI_ERR_ARG;
	if (!counts)
		return MPI_ERR_COUNT;
	for (int i = 0; i < n; i++) {
		if (coll_number(a, counts, i) < 0)
			return MPI_ERR_COUNT;
		total |= (size_t)coll_number(a, counts, i);
	}
	return check_one(buf, total ? 1 : 0, type);
}

static int members(const struct comm *c)
{
	return c->remote ? c->peers : c->size;
}

int check_coll_barrier(struct coll_args *a, MPI_Comm comm)
{
	return begin(a, COLL_BARRIER, comm);
}

int check_coll_bcast(struct coll_args *a, void *buf, int count, MPI_Datatype type, int root,
		     MPI_Comm comm)
{
	int rc = begin(a, COLL_BCAST, comm);
	if (rc)
		return rc;
	a->root = root;
	a->rbuf = buf;
	a->rcount = (size_t)count;
	a->rtype = datatype_of(type);
	if (buf == MPI_IN_PLACE)
		return MPI_ERR_ARG;
	rc = check_any_root(root, a->comm);
	if (rc || root == MPI_PROC_NULL)
		return rc;
	return check_one(buf, count, type);
}

int check_coll_gather_of(bool wide, struct coll_args *a, const void *sbuf, MPI_Count scount,
			 MPI_Datatype st, void *rbuf, MPI_Count rcount, const void *rcounts,
			 const void *displs, bool vector, MPI_Datatype rt, int root, MPI_Comm comm)
{
	int rc = begin(a, COLL_GATHER, comm);
	a->wide = wide;
	if (rc)
		return rc;
	a->root = root;
	a->ragged = vector;
	rc = check_any_root(root, a->comm);
	if (rc)
		return rc;
	bool in_place = sbuf == MPI_IN_PLACE, root_here = is_root(a);
	if ((in_place && (!root_here || a->comm->remote)) || (root_here && rbuf == MPI_IN_PLACE))
		return MPI_ERR_ARG;
	a->sbuf = sbuf;
	a->rbuf = rbuf;
	if (!in_place && (is_leaf(a) || !a->comm->remote)) {
		a->scount = (size_t)scount;
		a->stype = datatype_of(st);
		rc = check_one(sbuf, scount, st);
	}
	if (rc || !root_here)
		return rc;
	a->rcount = (size_t)rcount;
	a->rcounts = rcounts;
	a->rdispls = displs;
	a->rtype = datatype_of(rt);
	return vector ? check_many(a, rbuf, rcounts, displs, rt, members(a->comm))
		      : check_one(rbuf, rcount, rt);
}

int check_coll_scatter_of(bool wide, struct coll_args *a, const void *sbuf, MPI_Count scount,
			  const void *scounts, const void *displs, bool vector, MPI_Datatype st,
			  void *rbuf, MPI_Count rcount, MPI_Datatype rt, int root, MPI_Comm comm)
{
	int rc = begin(a, COLL_SCATTER, comm);
	a->wide = wide;
	if (rc)
		return rc;
	a->root = root;
	a->ragged = vector;
	rc = check_any_root(root, a->comm);
	if (rc)
		return rc;
	bool in_place = rbuf == MPI_IN_PLACE, root_here = is_root(a);
	if ((in_place && (!root_here || a->comm->remote)) || (root_here && sbuf == MPI_IN_PLACE))
		return MPI_ERR_ARG;
	a->sbuf = sbuf;
	a->rbuf = rbuf;
	if (!in_place && (is_leaf(a) || !a->comm->remote)) {
		a->rcount = (size_t)rcount;
		a->rtype = datatype_of(rt);
		rc = check_one(rbuf, rcount, rt);
	}
	if (rc || !root_here)
		return rc;
	a->scount = (size_t)scount;
	a->scounts = scounts;
	a->sdispls = displs;
	a->stype = datatype_of(st);
	return vector ? check_many(a, sbuf, scounts, displs, st, members(a->comm))
		      : check_one(sbuf, scount, st);
}

/* What is sent in operations without a root. */
static int check_send(struct coll_args *a, const void *sbuf, MPI_Count scount, MPI_Datatype st,
		      const void *rbuf)
{
	a->sbuf = sbuf;
	if (rbuf == MPI_IN_PLACE || (sbuf == MPI_IN_PLACE && a->comm->remote))
		return MPI_ERR_ARG;
	if (sbuf == MPI_IN_PLACE)
		return MPI_SUCCESS;
	a->scount = (size_t)scount;
	a->stype = datatype_of(st);
	return check_one(sbuf, scount, st);
}

int check_coll_allgather(struct coll_args *a, const void *sbuf, int scount, MPI_Datatype st,
			 void *rbuf, int rcount, MPI_Datatype rt, MPI_Comm comm)
{
	int rc = begin(a, COLL_ALLGATHER, comm);
	if (!rc)
		rc = check_send(a, sbuf, scount, st, rbuf);
	if (rc)
		return rc;
	a->rbuf = rbuf;
	a->rcount = (size_t)rcount;
	a->rtype = datatype_of(rt);
	return check_one(rbuf, rcount, rt);
}

int check_coll_allgatherv_of(bool wide, struct coll_args *a, const void *sbuf, MPI_Count scount,
			     MPI_Datatype st, void *rbuf, const void *rcounts, const void *displs,
			     MPI_Datatype rt, MPI_Comm comm)
{
	int rc = begin(a, COLL_ALLGATHER, comm);
	a->wide = wide;
	if (!rc)
		rc = check_send(a, sbuf, scount, st, rbuf);
	if (rc)
		return rc;
	a->rbuf = rbuf;
	a->rcounts = rcounts;
	a->rdispls = displs;
	a->rtype = datatype_of(rt);
	rc = check_many(a, rbuf, rcounts, displs, rt, members(a->comm));
	return rc == MPI_ERR_ARG && !displs ? MPI_ERR_BUFFER : rc;
}

/* What a member sends to itself must fit what it receives. */
static int check_self(const struct coll_args *a)
{
	if (a->sbuf == MPI_IN_PLACE || a->comm->remote)
		return MPI_SUCCESS;
	return coll_block_bytes(coll_send_block(a, a->comm->rank)) ==
		       coll_block_bytes(coll_recv_block(a, a->comm->rank))
		   ? MPI_SUCCESS
		   : MPI_ERR_TRUNCATE;
}

int check_coll_alltoall(struct coll_args *a, const void *sbuf, int scount, MPI_Datatype st,
			void *rbuf, int rcount, MPI_Datatype rt, MPI_Comm comm)
{
	int rc = check_coll_allgather(a, sbuf, scount, st, rbuf, rcount, rt, comm);
	a->kind = COLL_ALLTOALL;
	return rc ? rc : check_self(a);
}

int check_coll_alltoallv_of(bool wide, struct coll_args *a, const void *sbuf, const void *scounts,
			    const void *sdispls, MPI_Datatype st, void *rbuf, const void *rcounts,
			    const void *rdispls, MPI_Datatype rt, MPI_Comm comm)
{
	int rc = begin(a, COLL_ALLTOALL, comm);
	a->wide = wide;
	if (rc)
		return rc;
	bool in_place = sbuf == MPI_IN_PLACE;
	if (rbuf == MPI_IN_PLACE || (in_place && a->comm->remote))
		return MPI_ERR_ARG;
	if ((!in_place && (!scounts || !sdispls)) || !rcounts || !rdispls)
		return MPI_ERR_ARG;
	a->sbuf = sbuf;
	a->rbuf = rbuf;
	a->rcounts = rcounts;
	a->rdispls = rdispls;
	a->rtype = datatype_of(rt);
	if (!in_place) {
		a->scounts = scounts;
		a->sdispls = sdispls;
		a->stype = datatype_of(st);
		rc = check_many(a, sbuf, scounts, sdispls, st, members(a->comm));
	}
	if (!rc)
		rc = check_many(a, rbuf, rcounts, rdispls, rt, members(a->comm));
	return rc ? rc : check_self(a);
}

static int check_types(const struct coll_args *a, const void *counts, const MPI_Datatype *types,
		       int n)
{
	for (int i = 0; i < n; i++) {
		const struct datatype *t = datatype_of(types[i]);
		if (coll_number(a, counts, i) < 0)
			return MPI_ERR_COUNT;
		if (!datatype_ok(t) || !t->committed)
			return MPI_ERR_TYPE;
	}
	return MPI_SUCCESS;
}

int check_coll_alltoallw_of(bool wide, struct coll_args *a, const void *sbuf, const void *scounts,
			    const void *sdispls, const MPI_Datatype *st, void *rbuf,
			    const void *rcounts, const void *rdispls, const MPI_Datatype *rt,
			    MPI_Comm comm)
{
	int rc = begin(a, COLL_ALLTOALL, comm);
	a->wide = wide;
	if (rc)
		return rc;
	bool in_place = sbuf == MPI_IN_PLACE;
	if (rbuf == MPI_IN_PLACE || (in_place && a->comm->remote))
		return MPI_ERR_ARG;
	if ((!in_place && (!scounts || !sdispls || !st)) || !rcounts || !rdispls || !rt)
		return MPI_ERR_ARG;
	a->sbuf = sbuf;
	a->rbuf = rbuf;
	a->rcounts = rcounts;
	a->rdispls = rdispls;
	a->rtypes = (struct datatype *const *)rt;
	if (!in_place) {
		a->scounts = scounts;
		a->sdispls = sdispls;
		a->stypes = (struct datatype *const *)st;
		rc = check_types(a, scounts, st, members(a->comm));
	}
	if (!rc)
		rc = check_types(a, rcounts, rt, members(a->comm));
	return rc ? rc : check_self(a);
}
