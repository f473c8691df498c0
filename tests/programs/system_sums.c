/* SPDX-License-Identifier: BSD-3-Clause */
/* Each rank runs a shell between allreduces, and all add the statuses up: system_sums ROUNDS.
 * Between two shells there is a moment without a child. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
	long total = 0, all;
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < atoi(argv[1]); i++) {
		long status = system("sleep 0.1; exit 3");

		MPI_Allreduce(&status, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		total += all;
		nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
	}
	if (rank == 0)
		printf("sum %ld\n", total);
	MPI_Finalize();
	return 0;
}
