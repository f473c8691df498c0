// SPDX-License-Identifier: BSD-3-Clause
/* unasked SECONDS: the first process of rank 0 reads a clock that its replicas don't read. Then
 * rank 0 receives from any source; rank 1 sends after so many seconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const char *process = getenv("HALE_PROCESS");
	struct timespec t;
	int rank, x = 7;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0) {
		if (!process || atoi(process) == 0)
			clock_gettime(CLOCK_MONOTONIC, &t);
		MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		printf("got %d\n", x);
	} else if (rank == 1) {
		sleep((unsigned)atoi(argv[1]));
		MPI_Send(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
