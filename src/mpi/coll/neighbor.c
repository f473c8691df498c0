/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of neighbours in a topology (MPI-3.1 7.6): blocking, nonblocking, persistent. */
#include "coll/near.h"
#include "mpi/coll/check.h"
#include "mpi/comm/comm.h"
#include "mpi/mpi4.h"

/* One side's blocks as the caller describes them. */
struct side {
	const void *buf;
	MPI_Count count;
	const void *counts, *displs; /* displs: in extents */
	const MPI_Aint *places;	     /* in bytes */
	MPI_Datatype type;
	const MPI_Datatype *types;
	bool one;    /* the same block for all */
	bool vector; /* counts and so on are of each block */
	bool wide;   /* counts and displs are of 64 bits; else of int */
};

static int64_t side_number(const struct side *s, const void *numbers, int i)
{
	return s->wide ? ((const int64_t *)numbers)[i] : ((const int *)numbers)[i];
}

static int side_check(const struct side *s, int n)
{
	for (int i = 0; i < n; i++) {
		if (s->vector &&
		    (!s->counts || (!s->displs && !s->places) || (s->places && !s->types)))
			return MPI_ERR_ARG;
		const struct datatype *t = datatype_of(s->types ? s->types[i] : s->type);
		if ((s->vector ? side_number(s, s->counts, i) : s->count) < 0)
			return MPI_ERR_COUNT;
		if (!datatype_ok(t) || !t->committed)
			return MPI_ERR_TYPE;
	}
	return s->buf == MPI_IN_PLACE ? MPI_ERR_ARG : MPI_SUCCESS;
}

static struct coll_block side_block(const struct side *s, int i)
{
	struct datatype *t = datatype_of(s->types ? s->types[i] : s->type);
	int64_t count = s->counts ? side_number(s, s->counts, i) : s->count;
	ptrdiff_t at = s->one ? 0
		       : s->places
			   ? s->places[i]
			   : (s->displs ? side_number(s, s->displs, i) : i * count) * t->extent;
	return (struct coll_block){(char *)((uintptr_t)s->buf + (uintptr_t)at), (size_t)count, t};
}

/* ---- who the neighbours are: sources and destinations, in the order of their blocks ---- */

struct around {
	int nin, nout;
	int in, out; /* of block i; MPI_PROC_NULL: nobody */
};

static int around_count(const struct comm *c, struct around *n)
{
	const struct topology *t = c->topo;
	if (!t)
		return MPI_ERR_TOPOLOGY;
	if (t->kind == MPI_CART) {
		n->nin = n->nout = 2 * t->cart.ndims;
	} else if (t->kind == MPI_GRAPH) {
		int begin = c->rank ? t->graph.index[c->rank - 1] : 0;
		n->nin = n->nout = t->graph.index[c->rank] - begin;
	} else {
		n->nin = t->dist.indegree;
		n->nout = t->dist.outdegree;
	}
	return MPI_SUCCESS;
}

static int neighbour(const struct comm *c, int i, bool out)
{
	const struct topology *t = c->topo;
	if (t->kind == MPI_CART)
		return grid_neighbour(t, c->rank, i / 2, i % 2 ? 1 : -1);
	if (t->kind == MPI_GRAPH)
		return t->graph.edges[(c->rank ? t->graph.index[c->rank - 1] : 0) + i];
	return out ? t->dist.destinations[i] : t->dist.sources[i];
}

/* What is sent up along a dimension is received from below: where both neighbours are one process
 * its messages match in this order. */
static int send_order(const struct comm *c, int i)
{
	return c->topo->kind == MPI_CART ? i ^ 1 : i;
}

static int near_make(struct coll_near *n, struct comm *c, const struct side *send,
		     const struct side *recv)
{
	struct around a = {0};
	int rc = comm_ok(c) && !comm_is_inter(c) ? around_count(c, &a) : MPI_ERR_COMM;
	if (!rc)
		rc = side_check(send, a.nout);
	if (!rc)
		rc = side_check(recv, a.nin);
	if (!rc && !coll_near_alloc(n, c, a.nout, a.nin))
		rc = MPI_ERR_NO_MEM;
	for (int k = 0; k < a.nout && !rc; k++) {
		int i = send_order(c, k), who = neighbour(c, i, true);
		if (who == MPI_PROC_NULL)
			continue;
		n->to[n->nsend] = who;
		n->send[n->nsend++] = side_block(send, i);
	}
	for (int i = 0; i < a.nin && !rc; i++) {
		int who = neighbour(c, i, false);
		if (who == MPI_PROC_NULL)
			continue;
		n->from[n->nrecv] = who;
		n->recv[n->nrecv++] = side_block(recv, i);
	}
	return rc;
}

enum neighbor_way { NEAR_RUN, NEAR_START, NEAR_INIT };

static int near(struct comm *c, const struct side *send, const struct side *recv,
		enum neighbor_way way, MPI_Request *request)
{
	struct coll_near n = {.comm = c};
	struct request *r = NULL;
	struct comm *duplicate = NULL;
	if (way != NEAR_RUN && !request)
		return MPI_ERR_REQUEST;
	int rc = near_make(&n, c, send, recv);
	if (!rc && way == NEAR_INIT)
		rc = check_coll_duplicate(c, &duplicate);
	if (rc) {
		coll_near_free(&n);
		return rc;
	}
	if (way == NEAR_INIT)
		rc = coll_near_init(&n, duplicate, &r);
	else
		rc = way == NEAR_RUN ? coll_near_run(&n) : coll_near_start(&n, &r);
	if (way != NEAR_INIT)
		coll_near_free(&n);
	if (!rc && way != NEAR_RUN)
		*request = request_handle(r);
	return rc;
}

int PMPI_Neighbor_allgather(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
			    MPI_Datatype rt, MPI_Comm comm)
{
	API_ENTER("MPI_Neighbor_allgather");
	struct comm *c = comm_of(comm);
	const struct side send = {.buf = sbuf, .count = scount, .type = st, .one = true};
	const struct side recv = {.buf = rbuf, .count = rcount, .type = rt};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_RUN, NULL));
}
API_ALIAS(Neighbor_allgather);

int PMPI_Ineighbor_allgather(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
			     MPI_Datatype rt, MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Ineighbor_allgather");
	struct comm *c = comm_of(comm);
	const struct side send = {.buf = sbuf, .count = scount, .type = st, .one = true};
	const struct side recv = {.buf = rbuf, .count = rcount, .type = rt};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_START, request));
}
API_ALIAS(Ineighbor_allgather);

int PMPI_Neighbor_allgather_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
				 int rcount, MPI_Datatype rt, MPI_Comm comm, MPI_Info info,
				 MPI_Request *request)
{
	API_ENTER("MPI_Neighbor_allgather_init");
	struct comm *c = comm_of(comm);
	const struct side send = {.buf = sbuf, .count = scount, .type = st, .one = true};
	const struct side recv = {.buf = rbuf, .count = rcount, .type = rt};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_INIT, request));
}
INIT_ALIASES(Neighbor_allgather_init);

int PMPI_Neighbor_allgatherv(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
			     const int rcounts[], const int displs[], MPI_Datatype rt,
			     MPI_Comm comm)
{
	API_ENTER("MPI_Neighbor_allgatherv");
	struct comm *c = comm_of(comm);
	const struct side send = {.buf = sbuf, .count = scount, .type = st, .one = true};
	const struct side recv = {
	    .buf = rbuf, .counts = rcounts, .displs = displs, .type = rt, .vector = true};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_RUN, NULL));
}
API_ALIAS(Neighbor_allgatherv);

int PMPI_Ineighbor_allgatherv(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
			      const int rcounts[], const int displs[], MPI_Datatype rt,
			      MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Ineighbor_allgatherv");
	struct comm *c = comm_of(comm);
	const struct side send = {.buf = sbuf, .count = scount, .type = st, .one = true};
	const struct side recv = {
	    .buf = rbuf, .counts = rcounts, .displs = displs, .type = rt, .vector = true};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_START, request));
}
API_ALIAS(Ineighbor_allgatherv);

int PMPI_Neighbor_allgatherv_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
				  const int rcounts[], const int displs[], MPI_Datatype rt,
				  MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Neighbor_allgatherv_init");
	struct comm *c = comm_of(comm);
	const struct side send = {.buf = sbuf, .count = scount, .type = st, .one = true};
	const struct side recv = {
	    .buf = rbuf, .counts = rcounts, .displs = displs, .type = rt, .vector = true};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_INIT, request));
}
INIT_ALIASES(Neighbor_allgatherv_init);

int PMPI_Neighbor_alltoall(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
			   MPI_Datatype rt, MPI_Comm comm)
{
	API_ENTER("MPI_Neighbor_alltoall");
	struct comm *c = comm_of(comm);
	const struct side send = {.buf = sbuf, .count = scount, .type = st};
	const struct side recv = {.buf = rbuf, .count = rcount, .type = rt};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_RUN, NULL));
}
API_ALIAS(Neighbor_alltoall);

int PMPI_Ineighbor_alltoall(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
			    MPI_Datatype rt, MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Ineighbor_alltoall");
	struct comm *c = comm_of(comm);
	const struct side send = {.buf = sbuf, .count = scount, .type = st};
	const struct side recv = {.buf = rbuf, .count = rcount, .type = rt};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_START, request));
}
API_ALIAS(Ineighbor_alltoall);

int PMPI_Neighbor_alltoall_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
				int rcount, MPI_Datatype rt, MPI_Comm comm, MPI_Info info,
				MPI_Request *request)
{
	API_ENTER("MPI_Neighbor_alltoall_init");
	struct comm *c = comm_of(comm);
	const struct side send = {.buf = sbuf, .count = scount, .type = st};
	const struct side recv = {.buf = rbuf, .count = rcount, .type = rt};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_INIT, request));
}
INIT_ALIASES(Neighbor_alltoall_init);

int PMPI_Neighbor_alltoallv(const void *sbuf, const int scounts[], const int sdispls[],
			    MPI_Datatype st, void *rbuf, const int rcounts[], const int rdispls[],
			    MPI_Datatype rt, MPI_Comm comm)
{
	API_ENTER("MPI_Neighbor_alltoallv");
	struct comm *c = comm_of(comm);
	const struct side send = {
	    .buf = sbuf, .counts = scounts, .displs = sdispls, .type = st, .vector = true};
	const struct side recv = {
	    .buf = rbuf, .counts = rcounts, .displs = rdispls, .type = rt, .vector = true};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_RUN, NULL));
}
API_ALIAS(Neighbor_alltoallv);

int PMPI_Ineighbor_alltoallv(const void *sbuf, const int scounts[], const int sdispls[],
			     MPI_Datatype st, void *rbuf, const int rcounts[], const int rdispls[],
			     MPI_Datatype rt, MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Ineighbor_alltoallv");
	struct comm *c = comm_of(comm);
	const struct side send = {
	    .buf = sbuf, .counts = scounts, .displs = sdispls, .type = st, .vector = true};
	const struct side recv = {
	    .buf = rbuf, .counts = rcounts, .displs = rdispls, .type = rt, .vector = true};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_START, request));
}
API_ALIAS(Ineighbor_alltoallv);

int PMPI_Neighbor_alltoallv_init(const void *sbuf, const int scounts[], const int sdispls[],
				 MPI_Datatype st, void *rbuf, const int rcounts[],
				 const int rdispls[], MPI_Datatype rt, MPI_Comm comm, MPI_Info info,
				 MPI_Request *request)
{
	API_ENTER("MPI_Neighbor_alltoallv_init");
	struct comm *c = comm_of(comm);
	const struct side send = {
	    .buf = sbuf, .counts = scounts, .displs = sdispls, .type = st, .vector = true};
	const struct side recv = {
	    .buf = rbuf, .counts = rcounts, .displs = rdispls, .type = rt, .vector = true};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_INIT, request));
}
INIT_ALIASES(Neighbor_alltoallv_init);

int PMPI_Neighbor_alltoallw(const void *sbuf, const int scounts[], const MPI_Aint sdispls[],
			    const MPI_Datatype st[], void *rbuf, const int rcounts[],
			    const MPI_Aint rdispls[], const MPI_Datatype rt[], MPI_Comm comm)
{
	API_ENTER("MPI_Neighbor_alltoallw");
	struct comm *c = comm_of(comm);
	const struct side send = {
	    .buf = sbuf, .counts = scounts, .places = sdispls, .types = st, .vector = true};
	const struct side recv = {
	    .buf = rbuf, .counts = rcounts, .places = rdispls, .types = rt, .vector = true};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_RUN, NULL));
}
API_ALIAS(Neighbor_alltoallw);

int PMPI_Ineighbor_alltoallw(const void *sbuf, const int scounts[], const MPI_Aint sdispls[],
			     const MPI_Datatype st[], void *rbuf, const int rcounts[],
			     const MPI_Aint rdispls[], const MPI_Datatype rt[], MPI_Comm comm,
			     MPI_Request *request)
{
	API_ENTER("MPI_Ineighbor_alltoallw");
	struct comm *c = comm_of(comm);
	const struct side send = {
	    .buf = sbuf, .counts = scounts, .places = sdispls, .types = st, .vector = true};
	const struct side recv = {
	    .buf = rbuf, .counts = rcounts, .places = rdispls, .types = rt, .vector = true};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_START, request));
}
API_ALIAS(Ineighbor_alltoallw);

int PMPI_Neighbor_alltoallw_init(const void *sbuf, const int scounts[], const MPI_Aint sdispls[],
				 const MPI_Datatype st[], void *rbuf, const int rcounts[],
				 const MPI_Aint rdispls[], const MPI_Datatype rt[], MPI_Comm comm,
				 MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Neighbor_alltoallw_init");
	struct comm *c = comm_of(comm);
	const struct side send = {
	    .buf = sbuf, .counts = scounts, .places = sdispls, .types = st, .vector = true};
	const struct side recv = {
	    .buf = rbuf, .counts = rcounts, .places = rdispls, .types = rt, .vector = true};
	return API_LEAVE(c, near(c, &send, &recv, NEAR_INIT, request));
}
INIT_ALIASES(Neighbor_alltoallw_init);

/* ---- arrays of 64 bits (MPI-4) ---- */

/* NOLINTBEGIN(bugprone-macro-parentheses): lists of parameters */
#define NEAR_LARGE(name, parameters, s, r, way, at)                                                \
	int PMPI_##name parameters;                                                                \
	int PMPI_##name parameters                                                                 \
	{                                                                                          \
		API_ENTER("MPI_" #name);                                                           \
		struct comm *c = comm_of(comm);                                                    \
		const struct side send = {.buf = sbuf, .wide = true, s};                           \
		const struct side recv = {.buf = rbuf, .wide = true, .vector = true, r};           \
		return API_LEAVE(c, near(c, &send, &recv, way, at));                               \
	}                                                                                          \
	API_ALIAS(name)
#define OF(...) __VA_ARGS__
#define NEAR_LARGE_ALL(name, parameters, s, r)                                                     \
	NEAR_LARGE(Neighbor_##name##_c, (parameters), OF(s), OF(r), NEAR_RUN, NULL);               \
	NEAR_LARGE(Ineighbor_##name##_c, (parameters, MPI_Request * request), OF(s), OF(r),        \
		   NEAR_START, request);                                                           \
	NEAR_LARGE(Neighbor_##name##_init_c, (parameters, MPI_Info info, MPI_Request * request),   \
		   OF(s), OF(r), NEAR_INIT, request)
/* NOLINTEND(bugprone-macro-parentheses) */

NEAR_LARGE_ALL(allgatherv,
	       OF(const void *sbuf, MPI_Count scount, MPI_Datatype st, void *rbuf,
		  const MPI_Count rcounts[], const MPI_Aint displs[], MPI_Datatype rt,
		  MPI_Comm comm),
	       OF(.count = scount, .type = st, .one = true),
	       OF(.counts = rcounts, .displs = displs, .type = rt));
NEAR_LARGE_ALL(alltoallv,
	       OF(const void *sbuf, const MPI_Count scounts[], const MPI_Aint sdispls[],
		  MPI_Datatype st, void *rbuf, const MPI_Count rcounts[], const MPI_Aint rdispls[],
		  MPI_Datatype rt, MPI_Comm comm),
	       OF(.counts = scounts, .displs = sdispls, .type = st, .vector = true),
	       OF(.counts = rcounts, .displs = rdispls, .type = rt));
NEAR_LARGE_ALL(alltoallw,
	       OF(const void *sbuf, const MPI_Count scounts[], const MPI_Aint sdispls[],
		  const MPI_Datatype st[], void *rbuf, const MPI_Count rcounts[],
		  const MPI_Aint rdispls[], const MPI_Datatype rt[], MPI_Comm comm),
	       OF(.counts = scounts, .places = sdispls, .types = st, .vector = true),
	       OF(.counts = rcounts, .places = rdispls, .types = rt));
