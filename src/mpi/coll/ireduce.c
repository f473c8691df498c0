/* SPDX-License-Identifier: BSD-3-Clause */
/* Nonblocking reductions (MPI-3.1, 5.12). */
#include "mpi/coll/check.h"

int PMPI_Ireduce(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op, int root,
		 MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Ireduce");
	struct coll_args a;
	int rc = check_coll_reduce(&a, sbuf, rbuf, count, type, op, root, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Ireduce);

int PMPI_Iallreduce(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
		    MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Iallreduce");
	struct coll_args a;
	int rc = check_coll_vector(&a, COLL_ALLREDUCE, sbuf, rbuf, count, type, op, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Iallreduce);

int PMPI_Ireduce_scatter(const void *sbuf, void *rbuf, const int counts[], MPI_Datatype type,
			 MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Ireduce_scatter");
	struct coll_args a;
	int rc = check_coll_reduce_scatter(&a, sbuf, rbuf, counts, type, op, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Ireduce_scatter);

int PMPI_Ireduce_scatter_block(const void *sbuf, void *rbuf, int count, MPI_Datatype type,
			       MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Ireduce_scatter_block");
	struct coll_args a;
	int rc = check_coll_vector(&a, COLL_REDUCE_SCATTER, sbuf, rbuf, count, type, op, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Ireduce_scatter_block);

int PMPI_Iscan(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
	       MPI_Request *request)
{
	API_ENTER("MPI_Iscan");
	struct coll_args a;
	int rc = check_coll_vector(&a, COLL_SCAN, sbuf, rbuf, count, type, op, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Iscan);

int PMPI_Iexscan(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
		 MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Iexscan");
	struct coll_args a;
	int rc = check_coll_vector(&a, COLL_EXSCAN, sbuf, rbuf, count, type, op, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Iexscan);
