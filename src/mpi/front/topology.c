/* SPDX-License-Identifier: BSD-3-Clause */
/* Topologies: dimensions are as close to each other as possible, as the standard asks for and MPICH
 * does; the core's are Open MPI's. */
#include "mpi/comm/comm.h"
#include "mpi/front/front.h"

FRONT(int, Dims_create, (int nnodes, int ndims, int dims[]))
{
	int rc = ndims < 0 || nnodes < 1 ? MPI_ERR_DIMS : ndims > 0 && !dims ? MPI_ERR_ARG : MPI_SUCCESS;

	if (!rc) {
		guard_enter();
		rc = dims_create_balanced(nnodes, ndims, dims);
		guard_leave();
	}
	return rc ? front_error_out(api_error(NULL, rc, "MPI_Dims_create")) : rc;
}
