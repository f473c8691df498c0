// SPDX-License-Identifier: BSD-3-Clause
/* apart ROUNDS: one decision of the leaders at the beginning, none later. Then the ranks pass
 * numbers round, with a line of output every hundred rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, ranks, rounds = atoi(argv[1]);
	long sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Wtime();
	for (int i = 0; i < rounds; i++) {
		int out = rank + i, in;

		usleep(5000);
		MPI_Sendrecv(&out, 1, MPI_INT, (rank + 1) % ranks, 1, &in, 1, MPI_INT,
			     (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		sum += in;
		if (i % 100 == 0 && rank == 0) {
			printf("round %d\n", i);
			fflush(stdout);
		}
	}
	if (rank == 0)
		printf("sum %ld\n", sum);
	MPI_Finalize();
	return 0;
}
