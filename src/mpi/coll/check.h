/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/coll/: bindings of the collective operations. The blocking and the nonblocking form of each
 * share one check, which looks at the arguments as Open MPI does (class for class) and makes a
 * struct coll_args of them. Arguments that are not significant at this process are not touched.
 */
#ifndef HALE_MPI_COLL_CHECK_H
#define HALE_MPI_COLL_CHECK_H

#include "coll/args.h"
#include "mpi/api.h"
#include "mpi/task/intask.h"

/* Each returns MPI_SUCCESS or a class; a->comm is NULL when the communicator itself is bad. */
int check_coll_barrier(struct coll_args *a, MPI_Comm comm);
int check_coll_bcast(struct coll_args *a, void *buf, int count, MPI_Datatype type, int root,
		     MPI_Comm comm);
/* Those with arrays of counts: wide says whether the arrays, and displacements, are of 64 bits.
 * gather and scatter: counts NULL for the forms with one count. */
int check_coll_gather_of(bool wide, struct coll_args *a, const void *sbuf, MPI_Count scount,
			 MPI_Datatype st, void *rbuf, MPI_Count rcount, const void *rcounts,
			 const void *displs, bool vector, MPI_Datatype rt, int root, MPI_Comm comm);
int check_coll_scatter_of(bool wide, struct coll_args *a, const void *sbuf, MPI_Count scount,
			  const void *scounts, const void *displs, bool vector, MPI_Datatype st,
			  void *rbuf, MPI_Count rcount, MPI_Datatype rt, int root, MPI_Comm comm);
int check_coll_allgatherv_of(bool wide, struct coll_args *a, const void *sbuf, MPI_Count scount,
			     MPI_Datatype st, void *rbuf, const void *rcounts, const void *displs,
			     MPI_Datatype rt, MPI_Comm comm);
int check_coll_alltoallv_of(bool wide, struct coll_args *a, const void *sbuf, const void *scounts,
			    const void *sdispls, MPI_Datatype st, void *rbuf, const void *rcounts,
			    const void *rdispls, MPI_Datatype rt, MPI_Comm comm);
int check_coll_alltoallw_of(bool wide, struct coll_args *a, const void *sbuf, const void *scounts,
			    const void *sdispls, const MPI_Datatype *st, void *rbuf,
			    const void *rcounts, const void *rdispls, const MPI_Datatype *rt,
			    MPI_Comm comm);
int check_coll_reduce_scatter_of(bool wide, struct coll_args *a, const void *sbuf, void *rbuf,
				 const void *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int check_coll_allgather(struct coll_args *a, const void *sbuf, int scount, MPI_Datatype st,
			 void *rbuf, int rcount, MPI_Datatype rt, MPI_Comm comm);
int check_coll_alltoall(struct coll_args *a, const void *sbuf, int scount, MPI_Datatype st,
			void *rbuf, int rcount, MPI_Datatype rt, MPI_Comm comm);
int check_coll_reduce(struct coll_args *a, const void *sbuf, void *rbuf, MPI_Count count,
		      MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm);
/* allreduce, scan, exscan, reduce_scatter_block */
int check_coll_vector(struct coll_args *a, coll_kind_t kind, const void *sbuf, void *rbuf,
		      MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);

/* The same with arrays of int. */
static inline int check_coll_gather(struct coll_args *a, const void *sbuf, int scount,
				    MPI_Datatype st, void *rbuf, int rcount, const int *rcounts,
				    const int *displs, bool vector, MPI_Datatype rt, int root,
				    MPI_Comm comm)
{
	return check_coll_gather_of(false, a, sbuf, scount, st, rbuf, rcount, rcounts, displs,
				    vector, rt, root, comm);
}
static inline int check_coll_scatter(struct coll_args *a, const void *sbuf, int scount,
				     const int *scounts, const int *displs, bool vector,
				     MPI_Datatype st, void *rbuf, int rcount, MPI_Datatype rt,
				     int root, MPI_Comm comm)
{
	return check_coll_scatter_of(false, a, sbuf, scount, scounts, displs, vector, st, rbuf,
				     rcount, rt, root, comm);
}
static inline int check_coll_allgatherv(struct coll_args *a, const void *sbuf, int scount,
					MPI_Datatype st, void *rbuf, const int *rcounts,
					const int *displs, MPI_Datatype rt, MPI_Comm comm)
{
	return check_coll_allgatherv_of(false, a, sbuf, scount, st, rbuf, rcounts, displs, rt,
					comm);
}
static inline int check_coll_alltoallv(struct coll_args *a, const void *sbuf, const int *scounts,
				       const int *sdispls, MPI_Datatype st, void *rbuf,
				       const int *rcounts, const int *rdispls, MPI_Datatype rt,
				       MPI_Comm comm)
{
	return check_coll_alltoallv_of(false, a, sbuf, scounts, sdispls, st, rbuf, rcounts, rdispls,
				       rt, comm);
}
static inline int check_coll_alltoallw(struct coll_args *a, const void *sbuf, const int *scounts,
				       const int *sdispls, const MPI_Datatype *st, void *rbuf,
				       const int *rcounts, const int *rdispls,
				       const MPI_Datatype *rt, MPI_Comm comm)
{
	return check_coll_alltoallw_of(false, a, sbuf, scounts, sdispls, st, rbuf, rcounts, rdispls,
				       rt, comm);
}
static inline int check_coll_reduce_scatter(struct coll_args *a, const void *sbuf, void *rbuf,
					    const int *counts, MPI_Datatype type, MPI_Op op,
					    MPI_Comm comm)
{
	return check_coll_reduce_scatter_of(false, a, sbuf, rbuf, counts, type, op, comm);
}

/* What carries the messages of a persistent operation on c (coll/near.h). Collective. */
int check_coll_duplicate(struct comm *c, struct comm **duplicate);
/* The end of a persistent form: makes its request when rc, the checks' result, is MPI_SUCCESS. */
int check_coll_init(int rc, const struct coll_args *a, MPI_Request *request);

/* The end of a binding: runs the call, or starts it. */
#define COLL_RUN(rc, a)                                                                            \
	API_LEAVE((a).comm, (rc) ? (rc) : (profile_collective(&(a)), coll_call(&(a))))
#define COLL_START(rc, a, request) API_LEAVE((a).comm, coll_begin((rc), &(a), (request)))

static inline int coll_call(const struct coll_args *a)
{
	return UNLIKELY(tasklog_now != NULL) ? intask_coll_run(a) : coll_run(a);
}

static inline int coll_begin(int rc, const struct coll_args *a, MPI_Request *request)
{
	struct request *r = NULL;
	if (!request)
		return MPI_ERR_REQUEST;
	if (!rc) {
		profile_collective(a);
		rc = UNLIKELY(tasklog_now != NULL) ? intask_coll_start(a, &r) : coll_start(a, &r);
	}
	if (UNLIKELY(intask_landing_watch) && !tasklog_now && !rc)
		intask_landing_coll(r, a);
	if (!rc)
		*request = request_handle(r);
	return rc;
}

#endif
