/* SPDX-License-Identifier: BSD-3-Clause */
/* Nonblocking operations that move data (MPI-3.1, 5.12). */
#include "mpi/coll/check.h"

int PMPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Ibarrier");
	struct coll_args a;
	int rc = check_coll_barrier(&a, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Ibarrier);

int PMPI_Ibcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm,
		MPI_Request *request)
{
	API_ENTER("MPI_Ibcast");
	struct coll_args a;
	int rc = check_coll_bcast(&a, buf, count, type, root, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Ibcast);

int PMPI_Igather(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		 MPI_Datatype rt, int root, MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Igather");
	struct coll_args a;
	int rc = check_coll_gather(&a, sbuf, scount, st, rbuf, rcount, NULL, NULL, false, rt, root,
				   comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Igather);

int PMPI_Igatherv(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, const int rcounts[],
		  const int displs[], MPI_Datatype rt, int root, MPI_Comm comm,
		  MPI_Request *request)
{
	API_ENTER("MPI_Igatherv");
	struct coll_args a;
	int rc =
	    check_coll_gather(&a, sbuf, scount, st, rbuf, 0, rcounts, displs, true, rt, root, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Igatherv);

int PMPI_Iscatter(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		  MPI_Datatype rt, int root, MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Iscatter");
	struct coll_args a;
	int rc = check_coll_scatter(&a, sbuf, scount, NULL, NULL, false, st, rbuf, rcount, rt, root,
				    comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Iscatter);

int PMPI_Iscatterv(const void *sbuf, const int scounts[], const int displs[], MPI_Datatype st,
		   void *rbuf, int rcount, MPI_Datatype rt, int root, MPI_Comm comm,
		   MPI_Request *request)
{
	API_ENTER("MPI_Iscatterv");
	struct coll_args a;
	int rc = check_coll_scatter(&a, sbuf, 0, scounts, displs, true, st, rbuf, rcount, rt, root,
				    comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Iscatterv);

int PMPI_Iallgather(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		    MPI_Datatype rt, MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Iallgather");
	struct coll_args a;
	int rc = check_coll_allgather(&a, sbuf, scount, st, rbuf, rcount, rt, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Iallgather);

int PMPI_Iallgatherv(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, const int rcounts[],
		     const int displs[], MPI_Datatype rt, MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Iallgatherv");
	struct coll_args a;
	int rc = check_coll_allgatherv(&a, sbuf, scount, st, rbuf, rcounts, displs, rt, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Iallgatherv);

int PMPI_Ialltoall(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		   MPI_Datatype rt, MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Ialltoall");
	struct coll_args a;
	int rc = check_coll_alltoall(&a, sbuf, scount, st, rbuf, rcount, rt, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Ialltoall);

int PMPI_Ialltoallv(const void *sbuf, const int scounts[], const int sdispls[], MPI_Datatype st,
		    void *rbuf, const int rcounts[], const int rdispls[], MPI_Datatype rt,
		    MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Ialltoallv");
	struct coll_args a;
	int rc =
	    check_coll_alltoallv(&a, sbuf, scounts, sdispls, st, rbuf, rcounts, rdispls, rt, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Ialltoallv);

int PMPI_Ialltoallw(const void *sbuf, const int scounts[], const int sdispls[],
		    const MPI_Datatype st[], void *rbuf, const int rcounts[], const int rdispls[],
		    const MPI_Datatype rt[], MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Ialltoallw");
	struct coll_args a;
	int rc =
	    check_coll_alltoallw(&a, sbuf, scounts, sdispls, st, rbuf, rcounts, rdispls, rt, comm);
	return COLL_START(rc, a, request);
}
API_ALIAS(Ialltoallw);
