/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program for sanitizers: heap, stack, collectives, until a file is there (the argument, or
 * at once). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, size, sum = 0, end = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; !end; i++) {
		int *mine = malloc(1000 * sizeof(int)), *all = malloc(1000 * sizeof(int));
		for (int k = 0; k < 1000; k++)
			mine[k] = rank + k;
		MPI_Allreduce(mine, all, 1000, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		sum += all[999] == 999 * size + size * (size - 1) / 2;
		free(mine);
		free(all);
		if (i == 0 && rank == 0)
			printf("begun\n");
		end = argc < 2 || access(argv[1], F_OK) == 0;
		MPI_Bcast(&end, 1, MPI_INT, 0, MPI_COMM_WORLD);
		end = end && i >= 5;
		usleep(10000);
	}
	if (rank == 0)
		printf("sums %s\n", sum > 5 ? "right" : "wrong");
	MPI_Finalize();
	return 0;
}
