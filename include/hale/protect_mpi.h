/* SPDX-License-Identifier: BSD-3-Clause */
/* Protected regions with communication: all ranks of a communicator agree on each verdict, so that
 * all of them recover and run a region again, or none does (seed 000, 4.4.1). Include mpi.h of any
 * MPI first; halecc includes this header for regions with Comm. */
#ifndef HALE_PROTECT_MPI_H
#define HALE_PROTECT_MPI_H

#include <mpi.h>
#include <stdbool.h>

/* True if it is true on all ranks of comm. Collective. */
static inline bool hale_comm_all(MPI_Comm comm, bool mine)
{
	int in = mine, all = 0;

	MPI_Allreduce(&in, &all, 1, MPI_INT, MPI_LAND, comm);
	return all != 0;
}

#endif
