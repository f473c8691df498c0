// SPDX-License-Identifier: BSD-3-Clause
/* mpiio_opens FILE ROUNDS: opens a file, writes and closes it, again and again. Most checkpoints and
 * deaths come while it is being opened or closed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int rank, wrong = 0, all = 0;
	long rounds = atol(argv[2]), x, y;
	MPI_File f;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (long i = 0; i < rounds; i++) {
		MPI_Offset at = rank * (MPI_Offset)sizeof(long);
		MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f);
		y = -1;
		wrong += i && (MPI_File_read_at(f, at, &y, 1, MPI_LONG, MPI_STATUS_IGNORE) || y != i - 1 + rank);
		x = i + rank;
		wrong += MPI_File_write_at_all(f, at, &x, 1, MPI_LONG, MPI_STATUS_IGNORE) != MPI_SUCCESS;
		MPI_File_close(&f);
	}
	MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d wrong\n", all);
	MPI_Finalize();
	return 0;
}
