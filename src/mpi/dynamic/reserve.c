/* SPDX-License-Identifier: BSD-3-Clause */
/* hale-reserve: a process that MPI_Comm_spawn may make into another program. Its MPI_Init returns
 * when the job ends without that. */
#include <mpi.h>

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Finalize();
	return 0;
}
