// SPDX-License-Identifier: BSD-3-Clause
/* ready BYTES: nanoseconds of a message one way between two ranks. Round trips in batches that are
 * much shorter than a time slice; the tenth of them that took least stands for an undisturbed
 * machine: its slowest one is printed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCHES = 1000, TRIPS = 40 };

static int before(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static double took[BATCHES];
	int rank, bytes = argc > 1 ? atoi(argv[1]) : 8;
	char *data = calloc(1, (size_t)bytes + 1);

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < BATCHES; i++) {
		double begun = MPI_Wtime();
		for (int k = 0; k < TRIPS; k++) {
			if (rank == 0)
				MPI_Send(data, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
			MPI_Recv(data, bytes, MPI_BYTE, !rank, 1, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			if (rank == 1)
				MPI_Send(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
		}
		took[i] = (MPI_Wtime() - begun) / TRIPS / 2 * 1e9;
	}
	qsort(took, BATCHES, sizeof(took[0]), before);
	if (rank == 0)
		printf("%.2f\n", took[BATCHES / 10]);
	MPI_Finalize();
	free(data);
	return 0;
}
