/* SPDX-License-Identifier: BSD-3-Clause */
/* hale-reserve: a process that MPI_Comm_spawn may make into another program. Its MPI_Init does not
 * return: without that it ends the process when the job ends. */
#include <mpi.h>

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Finalize();
	return 0;
}
