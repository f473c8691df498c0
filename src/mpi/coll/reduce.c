/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking reductions (MPI-3.1, 5.9-5.11). */
#include "mpi/coll/check.h"

int PMPI_Reduce(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op, int root,
		MPI_Comm comm)
{
	API_ENTER("MPI_Reduce");
	struct coll_args a;
	int rc = check_coll_reduce(&a, sbuf, rbuf, count, type, op, root, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Reduce);

int PMPI_Allreduce(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
		   MPI_Comm comm)
{
	API_ENTER("MPI_Allreduce");
	struct coll_args a;
	int rc = check_coll_vector(&a, COLL_ALLREDUCE, sbuf, rbuf, count, type, op, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Allreduce);

int PMPI_Reduce_scatter(const void *sbuf, void *rbuf, const int counts[], MPI_Datatype type,
			MPI_Op op, MPI_Comm comm)
{
	API_ENTER("MPI_Reduce_scatter");
	struct coll_args a;
	int rc = check_coll_reduce_scatter(&a, sbuf, rbuf, counts, type, op, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Reduce_scatter);

int PMPI_Reduce_scatter_block(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
			      MPI_Comm comm)
{
	API_ENTER("MPI_Reduce_scatter_block");
	struct coll_args a;
	int rc = check_coll_vector(&a, COLL_REDUCE_SCATTER, sbuf, rbuf, count, type, op, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Reduce_scatter_block);

int PMPI_Scan(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	API_ENTER("MPI_Scan");
	struct coll_args a;
	int rc = check_coll_vector(&a, COLL_SCAN, sbuf, rbuf, count, type, op, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Scan);

int PMPI_Exscan(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
		MPI_Comm comm)
{
	API_ENTER("MPI_Exscan");
	struct coll_args a;
	int rc = check_coll_vector(&a, COLL_EXSCAN, sbuf, rbuf, count, type, op, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Exscan);
