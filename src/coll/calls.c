/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of coll.h: each call becomes one struct coll_args. */
#include "coll/coll.h"

#include "coll/cells/cells.h"

#define CALL(k, ...) (&(struct coll_args){.kind = COLL_##k, .comm = c, __VA_ARGS__})
#define SEND_ONE     .sbuf = sbuf, .scount = scount, .stype = st
#define RECV_ONE     .rbuf = rbuf, .rcount = rcount, .rtype = rt
#define VECTOR	     .sbuf = sbuf, .rbuf = rbuf, .rcount = count, .rtype = t, .op = op

int coll_barrier(struct comm *c)
{
	return coll_run(CALL(BARRIER));
}

int coll_ibarrier(struct comm *c, struct request **req)
{
	return coll_start(CALL(BARRIER), req);
}

int coll_bcast(void *buf, size_t count, struct datatype *t, int root, struct comm *c)
{
	return coll_run(CALL(BCAST, .rbuf = buf, .rcount = count, .rtype = t, .root = root));
}

int coll_ibcast(void *buf, size_t count, struct datatype *t, int root, struct comm *c,
		struct request **req)
{
	return coll_start(CALL(BCAST, .rbuf = buf, .rcount = count, .rtype = t, .root = root), req);
}

int coll_reduce(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
		int root, struct comm *c)
{
	return coll_run(CALL(REDUCE, VECTOR, .root = root));
}

int coll_ireduce(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
		 int root, struct comm *c, struct request **req)
{
	return coll_start(CALL(REDUCE, VECTOR, .root = root), req);
}

int coll_allreduce(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
		   struct comm *c)
{
	return coll_run(CALL(ALLREDUCE, VECTOR));
}

int coll_iallreduce(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
		    struct comm *c, struct request **req)
{
	return coll_start(CALL(ALLREDUCE, VECTOR), req);
}

int coll_reduce_scatter(const void *sbuf, void *rbuf, const int *counts, struct datatype *t,
			struct op *op, struct comm *c)
{
	return coll_run(CALL(REDUCE_SCATTER, .sbuf = sbuf, .rbuf = rbuf, .rcounts = counts,
			     .rtype = t, .op = op));
}

int coll_ireduce_scatter(const void *sbuf, void *rbuf, const int *counts, struct datatype *t,
			 struct op *op, struct comm *c, struct request **req)
{
	return coll_start(CALL(REDUCE_SCATTER, .sbuf = sbuf, .rbuf = rbuf, .rcounts = counts,
			       .rtype = t, .op = op),
			  req);
}

int coll_reduce_scatter_block(const void *sbuf, void *rbuf, size_t count, struct datatype *t,
			      struct op *op, struct comm *c)
{
	return coll_run(CALL(REDUCE_SCATTER, VECTOR));
}

int coll_ireduce_scatter_block(const void *sbuf, void *rbuf, size_t count, struct datatype *t,
			       struct op *op, struct comm *c, struct request **req)
{
	return coll_start(CALL(REDUCE_SCATTER, VECTOR), req);
}

int coll_scan(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
	      struct comm *c)
{
	return coll_run(CALL(SCAN, VECTOR));
}

int coll_iscan(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
	       struct comm *c, struct request **req)
{
	return coll_start(CALL(SCAN, VECTOR), req);
}

int coll_exscan(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
		struct comm *c)
{
	return coll_run(CALL(EXSCAN, VECTOR));
}

int coll_iexscan(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
		 struct comm *c, struct request **req)
{
	return coll_start(CALL(EXSCAN, VECTOR), req);
}

int coll_gather(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		struct datatype *rt, int root, struct comm *c)
{
	return coll_run(CALL(GATHER, SEND_ONE, RECV_ONE, .root = root));
}

int coll_igather(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		 struct datatype *rt, int root, struct comm *c, struct request **req)
{
	return coll_start(CALL(GATHER, SEND_ONE, RECV_ONE, .root = root), req);
}

int coll_gatherv(const void *sbuf, size_t scount, struct datatype *st, void *rbuf,
		 const int *rcounts, const int *displs, struct datatype *rt, int root,
		 struct comm *c)
{
	return coll_run(CALL(GATHER, SEND_ONE, .rbuf = rbuf, .rcounts = rcounts, .rdispls = displs,
			     .rtype = rt, .root = root, .ragged = true));
}

int coll_igatherv(const void *sbuf, size_t scount, struct datatype *st, void *rbuf,
		  const int *rcounts, const int *displs, struct datatype *rt, int root,
		  struct comm *c, struct request **req)
{
	return coll_start(CALL(GATHER, SEND_ONE, .rbuf = rbuf, .rcounts = rcounts,
			       .rdispls = displs, .rtype = rt, .root = root, .ragged = true),
			  req);
}

int coll_scatter(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		 struct datatype *rt, int root, struct comm *c)
{
	return coll_run(CALL(SCATTER, SEND_ONE, RECV_ONE, .root = root));
}

int coll_iscatter(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		  struct datatype *rt, int root, struct comm *c, struct request **req)
{
	return coll_start(CALL(SCATTER, SEND_ONE, RECV_ONE, .root = root), req);
}

int coll_scatterv(const void *sbuf, const int *scounts, const int *displs, struct datatype *st,
		  void *rbuf, size_t rcount, struct datatype *rt, int root, struct comm *c)
{
	return coll_run(CALL(SCATTER, .sbuf = sbuf, .scounts = scounts, .sdispls = displs,
			     .stype = st, RECV_ONE, .root = root, .ragged = true));
}

int coll_iscatterv(const void *sbuf, const int *scounts, const int *displs, struct datatype *st,
		   void *rbuf, size_t rcount, struct datatype *rt, int root, struct comm *c,
		   struct request **req)
{
	return coll_start(CALL(SCATTER, .sbuf = sbuf, .scounts = scounts, .sdispls = displs,
			       .stype = st, RECV_ONE, .root = root, .ragged = true),
			  req);
}

int coll_allgather(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		   struct datatype *rt, struct comm *c)
{
	return coll_run(CALL(ALLGATHER, SEND_ONE, RECV_ONE));
}

int coll_iallgather(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		    struct datatype *rt, struct comm *c, struct request **req)
{
	return coll_start(CALL(ALLGATHER, SEND_ONE, RECV_ONE), req);
}

int coll_allgatherv(const void *sbuf, size_t scount, struct datatype *st, void *rbuf,
		    const int *rcounts, const int *displs, struct datatype *rt, struct comm *c)
{
	return coll_run(CALL(ALLGATHER, SEND_ONE, .rbuf = rbuf, .rcounts = rcounts,
			     .rdispls = displs, .rtype = rt));
}

int coll_iallgatherv(const void *sbuf, size_t scount, struct datatype *st, void *rbuf,
		     const int *rcounts, const int *displs, struct datatype *rt, struct comm *c,
		     struct request **req)
{
	return coll_start(CALL(ALLGATHER, SEND_ONE, .rbuf = rbuf, .rcounts = rcounts,
			       .rdispls = displs, .rtype = rt),
			  req);
}

int coll_alltoall(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		  struct datatype *rt, struct comm *c)
{
	return coll_run(CALL(ALLTOALL, SEND_ONE, RECV_ONE));
}

int coll_ialltoall(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		   struct datatype *rt, struct comm *c, struct request **req)
{
	return coll_start(CALL(ALLTOALL, SEND_ONE, RECV_ONE), req);
}

int coll_alltoallv(const void *sbuf, const int *scounts, const int *sdispls, struct datatype *st,
		   void *rbuf, const int *rcounts, const int *rdispls, struct datatype *rt,
		   struct comm *c)
{
	return coll_run(CALL(ALLTOALL, .sbuf = sbuf, .scounts = scounts, .sdispls = sdispls,
			     .stype = st, .rbuf = rbuf, .rcounts = rcounts, .rdispls = rdispls,
			     .rtype = rt));
}

int coll_ialltoallv(const void *sbuf, const int *scounts, const int *sdispls, struct datatype *st,
		    void *rbuf, const int *rcounts, const int *rdispls, struct datatype *rt,
		    struct comm *c, struct request **req)
{
	return coll_start(CALL(ALLTOALL, .sbuf = sbuf, .scounts = scounts, .sdispls = sdispls,
			       .stype = st, .rbuf = rbuf, .rcounts = rcounts, .rdispls = rdispls,
			       .rtype = rt),
			  req);
}

int coll_alltoallw(const void *sbuf, const int *scounts, const int *sdispls,
		   struct datatype *const *st, void *rbuf, const int *rcounts, const int *rdispls,
		   struct datatype *const *rt, struct comm *c)
{
	return coll_run(CALL(ALLTOALL, .sbuf = sbuf, .scounts = scounts, .sdispls = sdispls,
			     .stypes = st, .rbuf = rbuf, .rcounts = rcounts, .rdispls = rdispls,
			     .rtypes = rt));
}

int coll_ialltoallw(const void *sbuf, const int *scounts, const int *sdispls,
		    struct datatype *const *st, void *rbuf, const int *rcounts, const int *rdispls,
		    struct datatype *const *rt, struct comm *c, struct request **req)
{
	return coll_start(CALL(ALLTOALL, .sbuf = sbuf, .scounts = scounts, .sdispls = sdispls,
			       .stypes = st, .rbuf = rbuf, .rcounts = rcounts, .rdispls = rdispls,
			       .rtypes = rt),
			  req);
}
