/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts of 64 bits where mpi/front/large.c has no way around them (MPI-4, 6.5-6.11): reductions,
 * whose operations would not take one element of a contiguous type in place of many; and arrays. */
#include "mpi/coll/check.h"
#include "mpi/mpi4.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): lists of parameters */
#define LARGE(name, parameters, body)                                                              \
	int PMPI_##name parameters;                                                                \
	int PMPI_##name parameters                                                                 \
	{                                                                                          \
		API_ENTER("MPI_" #name);                                                           \
		struct coll_args a;                                                                \
		body;                                                                              \
	}                                                                                          \
	API_ALIAS(name)
/* NOLINTEND(bugprone-macro-parentheses) */

#define REDUCE_CHECKED int rc = check_coll_reduce(&a, sbuf, rbuf, count, type, op, root, comm)
LARGE(Reduce_c,
      (const void *sbuf, void *rbuf, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
       MPI_Comm comm),
      REDUCE_CHECKED;
      return COLL_RUN(rc, a));
LARGE(Ireduce_c,
      (const void *sbuf, void *rbuf, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
       MPI_Comm comm, MPI_Request *request),
      REDUCE_CHECKED;
      return COLL_START(rc, a, request));
LARGE(Reduce_init_c,
      (const void *sbuf, void *rbuf, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
       MPI_Comm comm, MPI_Info info, MPI_Request *request),
      REDUCE_CHECKED;
      return API_LEAVE(a.comm, check_coll_init(rc, &a, request)));

/* The three forms of a reduction without a root. */
#define LARGE_VECTOR(name, lower, kind)                                                            \
	LARGE(name##_c,                                                                            \
	      (const void *sbuf, void *rbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,        \
	       MPI_Comm comm),                                                                     \
	      int rc = check_coll_vector(&a, kind, sbuf, rbuf, count, type, op, comm);             \
	      return COLL_RUN(rc, a));                                                             \
	LARGE(I##lower##_c,                                                                        \
	      (const void *sbuf, void *rbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,        \
	       MPI_Comm comm, MPI_Request *request),                                               \
	      int rc = check_coll_vector(&a, kind, sbuf, rbuf, count, type, op, comm);             \
	      return COLL_START(rc, a, request));                                                  \
	LARGE(name##_init_c,                                                                       \
	      (const void *sbuf, void *rbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,        \
	       MPI_Comm comm, MPI_Info info, MPI_Request *request),                                \
	      int rc = check_coll_vector(&a, kind, sbuf, rbuf, count, type, op, comm);             \
	      return API_LEAVE(a.comm, check_coll_init(rc, &a, request)))

LARGE_VECTOR(Allreduce, allreduce, COLL_ALLREDUCE);
LARGE_VECTOR(Scan, scan, COLL_SCAN);
LARGE_VECTOR(Exscan, exscan, COLL_EXSCAN);
LARGE_VECTOR(Reduce_scatter_block, reduce_scatter_block, COLL_REDUCE_SCATTER);

/* The three forms of an operation with arrays. lower: its name behind MPI_I. parameters: those of
 * the blocking form, in OF(); the two others get an info or a request behind them. check: the call
 * that looks at the arguments and fills a. */
/* NOLINTBEGIN(bugprone-macro-parentheses): lists of parameters */
#define OF(...) __VA_ARGS__
#define LARGE_ARRAYS(name, lower, parameters, check)                                               \
	LARGE(name##_c, (parameters), int rc = check; return COLL_RUN(rc, a));                     \
	LARGE(I##lower##_c, (parameters, MPI_Request * request), int rc = check;                   \
	      return COLL_START(rc, a, request));                                                  \
	LARGE(name##_init_c, (parameters, MPI_Info info, MPI_Request * request), int rc = check;   \
	      return API_LEAVE(a.comm, check_coll_init(rc, &a, request)))
/* NOLINTEND(bugprone-macro-parentheses) */

LARGE_ARRAYS(Gatherv, gatherv,
	     OF(const void *sbuf, MPI_Count scount, MPI_Datatype st, void *rbuf,
		const MPI_Count rcounts[], const MPI_Aint displs[], MPI_Datatype rt, int root,
		MPI_Comm comm),
	     check_coll_gather_of(true, &a, sbuf, scount, st, rbuf, 0, rcounts, displs, true, rt,
				  root, comm));
LARGE_ARRAYS(Scatterv, scatterv,
	     OF(const void *sbuf, const MPI_Count scounts[], const MPI_Aint displs[],
		MPI_Datatype st, void *rbuf, MPI_Count rcount, MPI_Datatype rt, int root,
		MPI_Comm comm),
	     check_coll_scatter_of(true, &a, sbuf, 0, scounts, displs, true, st, rbuf, rcount, rt,
				   root, comm));
LARGE_ARRAYS(Allgatherv, allgatherv,
	     OF(const void *sbuf, MPI_Count scount, MPI_Datatype st, void *rbuf,
		const MPI_Count rcounts[], const MPI_Aint displs[], MPI_Datatype rt, MPI_Comm comm),
	     check_coll_allgatherv_of(true, &a, sbuf, scount, st, rbuf, rcounts, displs, rt, comm));
LARGE_ARRAYS(Alltoallv, alltoallv,
	     OF(const void *sbuf, const MPI_Count scounts[], const MPI_Aint sdispls[],
		MPI_Datatype st, void *rbuf, const MPI_Count rcounts[], const MPI_Aint rdispls[],
		MPI_Datatype rt, MPI_Comm comm),
	     check_coll_alltoallv_of(true, &a, sbuf, scounts, sdispls, st, rbuf, rcounts, rdispls,
				     rt, comm));
LARGE_ARRAYS(Alltoallw, alltoallw,
	     OF(const void *sbuf, const MPI_Count scounts[], const MPI_Aint sdispls[],
		const MPI_Datatype st[], void *rbuf, const MPI_Count rcounts[],
		const MPI_Aint rdispls[], const MPI_Datatype rt[], MPI_Comm comm),
	     check_coll_alltoallw_of(true, &a, sbuf, scounts, sdispls, st, rbuf, rcounts, rdispls,
				     rt, comm));
LARGE_ARRAYS(Reduce_scatter, reduce_scatter,
	     OF(const void *sbuf, void *rbuf, const MPI_Count rcounts[], MPI_Datatype type,
		MPI_Op op, MPI_Comm comm),
	     check_coll_reduce_scatter_of(true, &a, sbuf, rbuf, rcounts, type, op, comm));
