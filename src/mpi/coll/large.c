/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions with one count of 64 bits (MPI-4, 6.9-6.11). Other calls get a large count as one
 * element of a contiguous type (mpi/front/large.c), which an operation would not take. */
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
      REDUCE_CHECKED; return COLL_RUN(rc, a));
LARGE(Ireduce_c,
      (const void *sbuf, void *rbuf, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
       MPI_Comm comm, MPI_Request *request),
      REDUCE_CHECKED; return COLL_START(rc, a, request));
LARGE(Reduce_init_c,
      (const void *sbuf, void *rbuf, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
       MPI_Comm comm, MPI_Info info, MPI_Request *request),
      REDUCE_CHECKED; return API_LEAVE(a.comm, check_coll_init(rc, &a, request)));

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
