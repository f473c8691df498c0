/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Wtime: the program's monotonic clock, which goes on where it is restored (ckpt/clocks.h). */
#include "base/clock.h"
#include "mpi/api.h"

double PMPI_Wtime(void)
{
	return clock_seconds();
}
API_ALIAS(Wtime);

double PMPI_Wtick(void)
{
	struct timespec t;

	clock_getres(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
API_ALIAS(Wtick);
