/* SPDX-License-Identifier: BSD-3-Clause */
/* beats SECONDS: ranks compute and agree, over and over; rank 0 prints how often a second. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	double until, sum = 0, all = 0;
	long n = 0;
	int rank, go = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	puts("begun");
	fflush(stdout);
	until = MPI_Wtime() + atof(argv[1]);
	for (; go; n++) {
		for (int i = 1; i < 20000; i++)
			sum += 1.0 / i;
		MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		go = MPI_Wtime() < until;
		MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("%.1f beats/s (%g)\n", (double)n / atof(argv[1]), all);
	MPI_Finalize();
	return 0;
}
