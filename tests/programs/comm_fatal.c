/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes an error that nobody handles. */
#include <mpi.h>

int main(int argc, char **argv)
{
	MPI_Comm c;
	MPI_Init(&argc, &argv);
	MPI_Comm_dup(MPI_COMM_NULL, &c);
	MPI_Finalize();
	return 0;
}
