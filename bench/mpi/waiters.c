// SPDX-License-Identifier: BSD-3-Clause
/* All ranks but the first wait in a receive for so many seconds; the first sleeps, then sends.
 * Beside it bench/run.py runs a CPU-bound neighbour: what the waiting costs others. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
	int rank, size, word = 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0) {
		double s = argc > 1 ? atof(argv[1]) : 3;
		struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
		nanosleep(&t, NULL);
		for (int i = 1; i < size; i++)
			MPI_Send(&word, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
	} else {
		MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Finalize();
	return 0;
}
