/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent collectives: MPI-4's names, and Open MPI 4.1's, which begin with MPIX. There are no hints
 * for them in an info object. */
#include "coll/near.h"
#include "deliver/redundant.h"
#include "mpi/coll/check.h"
#include "mpi/mpi4.h"

/* Processes may start these in any order, and with replicas the operations of a communicator run one
 * after the other (coll/schedule.c). So each gets a communicator of its own there: initialisations
 * are collective, in the same order everywhere. */
int check_coll_duplicate(struct comm *c, struct comm **duplicate)
{
	*duplicate = NULL;
	return LIKELY(!redundant_on) ? MPI_SUCCESS : comm_duplicate(c, duplicate);
}

int check_coll_init(int rc, const struct coll_args *a, MPI_Request *request)
{
	struct request *r = NULL;
	struct comm *duplicate = NULL;
	if (!request)
		return MPI_ERR_REQUEST;
	if (!rc)
		rc = check_coll_duplicate(a->comm, &duplicate);
	if (!rc)
		rc = coll_init_args(a, duplicate, &r);
	if (UNLIKELY(intask_landing_watch) && !rc)
		intask_landing_coll(r, a);
	if (!rc)
		*request = request_handle(r);
	return rc;
}

int PMPI_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Barrier_init");
	struct coll_args a;
	int rc = check_coll_barrier(&a, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Barrier_init);

int PMPI_Bcast_init(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Info info,
		    MPI_Request *request)
{
	API_ENTER("MPI_Bcast_init");
	struct coll_args a;
	int rc = check_coll_bcast(&a, buf, count, type, root, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Bcast_init);

int PMPI_Gather_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		     MPI_Datatype rt, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Gather_init");
	struct coll_args a;
	int rc = check_coll_gather(&a, sbuf, scount, st, rbuf, rcount, NULL, NULL, false, rt, root,
				   comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Gather_init);

int PMPI_Gatherv_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
		      const int rcounts[], const int displs[], MPI_Datatype rt, int root,
		      MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Gatherv_init");
	struct coll_args a;
	int rc =
	    check_coll_gather(&a, sbuf, scount, st, rbuf, 0, rcounts, displs, true, rt, root, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Gatherv_init);

int PMPI_Scatter_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		      MPI_Datatype rt, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Scatter_init");
	struct coll_args a;
	int rc = check_coll_scatter(&a, sbuf, scount, NULL, NULL, false, st, rbuf, rcount, rt, root,
				    comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Scatter_init);

int PMPI_Scatterv_init(const void *sbuf, const int scounts[], const int displs[], MPI_Datatype st,
		       void *rbuf, int rcount, MPI_Datatype rt, int root, MPI_Comm comm,
		       MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Scatterv_init");
	struct coll_args a;
	int rc = check_coll_scatter(&a, sbuf, 0, scounts, displs, true, st, rbuf, rcount, rt, root,
				    comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Scatterv_init);

int PMPI_Allgather_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
			MPI_Datatype rt, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Allgather_init");
	struct coll_args a;
	int rc = check_coll_allgather(&a, sbuf, scount, st, rbuf, rcount, rt, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Allgather_init);

int PMPI_Allgatherv_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf,
			 const int rcounts[], const int displs[], MPI_Datatype rt, MPI_Comm comm,
			 MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Allgatherv_init");
	struct coll_args a;
	int rc = check_coll_allgatherv(&a, sbuf, scount, st, rbuf, rcounts, displs, rt, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Allgatherv_init);

int PMPI_Alltoall_init(const void *sbuf, int scount, MPI_Datatype st, void *rbuf, int rcount,
		       MPI_Datatype rt, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Alltoall_init");
	struct coll_args a;
	int rc = check_coll_alltoall(&a, sbuf, scount, st, rbuf, rcount, rt, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Alltoall_init);

int PMPI_Alltoallv_init(const void *sbuf, const int scounts[], const int sdispls[], MPI_Datatype st,
			void *rbuf, const int rcounts[], const int rdispls[], MPI_Datatype rt,
			MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Alltoallv_init");
	struct coll_args a;
	int rc =
	    check_coll_alltoallv(&a, sbuf, scounts, sdispls, st, rbuf, rcounts, rdispls, rt, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Alltoallv_init);

int PMPI_Alltoallw_init(const void *sbuf, const int scounts[], const int sdispls[],
			const MPI_Datatype st[], void *rbuf, const int rcounts[],
			const int rdispls[], const MPI_Datatype rt[], MPI_Comm comm, MPI_Info info,
			MPI_Request *request)
{
	API_ENTER("MPI_Alltoallw_init");
	struct coll_args a;
	int rc =
	    check_coll_alltoallw(&a, sbuf, scounts, sdispls, st, rbuf, rcounts, rdispls, rt, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Alltoallw_init);

int PMPI_Reduce_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
		     int root, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Reduce_init");
	struct coll_args a;
	int rc = check_coll_reduce(&a, sbuf, rbuf, count, type, op, root, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Reduce_init);

int PMPI_Allreduce_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
			MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Allreduce_init");
	struct coll_args a;
	int rc = check_coll_vector(&a, COLL_ALLREDUCE, sbuf, rbuf, count, type, op, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Allreduce_init);

int PMPI_Scan_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
		   MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Scan_init");
	struct coll_args a;
	int rc = check_coll_vector(&a, COLL_SCAN, sbuf, rbuf, count, type, op, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Scan_init);

int PMPI_Exscan_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type, MPI_Op op,
		     MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Exscan_init");
	struct coll_args a;
	int rc = check_coll_vector(&a, COLL_EXSCAN, sbuf, rbuf, count, type, op, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Exscan_init);

int PMPI_Reduce_scatter_block_init(const void *sbuf, void *rbuf, int count, MPI_Datatype type,
				   MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Reduce_scatter_block_init");
	struct coll_args a;
	int rc = check_coll_vector(&a, COLL_REDUCE_SCATTER, sbuf, rbuf, count, type, op, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Reduce_scatter_block_init);

int PMPI_Reduce_scatter_init(const void *sbuf, void *rbuf, const int counts[], MPI_Datatype type,
			     MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	API_ENTER("MPI_Reduce_scatter_init");
	struct coll_args a;
	int rc = check_coll_reduce_scatter(&a, sbuf, rbuf, counts, type, op, comm);
	return API_LEAVE(a.comm, check_coll_init(rc, &a, request));
}
INIT_ALIASES(Reduce_scatter_init);
