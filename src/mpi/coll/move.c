/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking operations that move data (MPI-3.1, 5.3-5.8). */
#include "mpi/coll/check.h"

int PMPI_Barrier(MPI_Comm comm)
{
	API_ENTER("MPI_Barrier");
	struct coll_args a;
	int rc = check_coll_barrier(&a, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Barrier);

int PMPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	API_ENTER("MPI_Bcast");
	struct coll_args a;
	int rc = check_coll_bcast(&a, buf, count, type, root, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Bcast);

int PMPI_Gather(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		MPI_Datatype rt, int root, MPI_Comm comm)
{
	API_ENTER("MPI_Gather");
	struct coll_args a;
	int rc = check_coll_gather(&a, sbuf, scount, st, rbuf, rcount, NULL, NULL, false, rt, root,
				   comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Gather);

int PMPI_Gatherv(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, const int rcounts[],
		 const int displs[], MPI_Datatype rt, int root, MPI_Comm comm)
{
	API_ENTER("MPI_Gatherv");
	struct coll_args a;
	int rc =
	    check_coll_gather(&a, sbuf, scount, st, rbuf, 0, rcounts, displs, true, rt, root, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Gatherv);

int PMPI_Scatter(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		 MPI_Datatype rt, int root, MPI_Comm comm)
{
	API_ENTER("MPI_Scatter");
	struct coll_args a;
	int rc = check_coll_scatter(&a, sbuf, scount, NULL, NULL, false, st, rbuf, rcount, rt, root,
				    comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Scatter);

int PMPI_Scatterv(const void *sbuf, const int scounts[], const int displs[], MPI_Datatype st,
		  void *rbuf, int rcount, MPI_Datatype rt, int root, MPI_Comm comm)
{
	API_ENTER("MPI_Scatterv");
	struct coll_args a;
	int rc = check_coll_scatter(&a, sbuf, 0, scounts, displs, true, st, rbuf, rcount, rt, root,
				    comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Scatterv);

int PMPI_Allgather(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		   MPI_Datatype rt, MPI_Comm comm)
{
	API_ENTER("MPI_Allgather");
	struct coll_args a;
	int rc = check_coll_allgather(&a, sbuf, scount, st, rbuf, rcount, rt, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Allgather);

int PMPI_Allgatherv(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, const int rcounts[],
		    const int displs[], MPI_Datatype rt, MPI_Comm comm)
{
	API_ENTER("MPI_Allgatherv");
	struct coll_args a;
	int rc = check_coll_allgatherv(&a, sbuf, scount, st, rbuf, rcounts, displs, rt, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Allgatherv);

int PMPI_Alltoall(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		  MPI_Datatype rt, MPI_Comm comm)
{
	API_ENTER("MPI_Alltoall");
	struct coll_args a;
	int rc = check_coll_alltoall(&a, sbuf, scount, st, rbuf, rcount, rt, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Alltoall);

int PMPI_Alltoallv(const void *sbuf, const int scounts[], const int sdispls[], MPI_Datatype st,
		   void *rbuf, const int rcounts[], const int rdispls[], MPI_Datatype rt,
		   MPI_Comm comm)
{
	API_ENTER("MPI_Alltoallv");
	struct coll_args a;
	int rc =
	    check_coll_alltoallv(&a, sbuf, scounts, sdispls, st, rbuf, rcounts, rdispls, rt, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Alltoallv);

int PMPI_Alltoallw(const void *sbuf, const int scounts[], const int sdispls[],
		   const MPI_Datatype st[], void *rbuf, const int rcounts[], const int rdispls[],
		   const MPI_Datatype rt[], MPI_Comm comm)
{
	API_ENTER("MPI_Alltoallw");
	struct coll_args a;
	int rc =
	    check_coll_alltoallw(&a, sbuf, scounts, sdispls, st, rbuf, rcounts, rdispls, rt, comm);
	return COLL_RUN(rc, a);
}
API_ALIAS(Alltoallw);
