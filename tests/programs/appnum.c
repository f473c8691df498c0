// SPDX-License-Identifier: BSD-3-Clause
/* appnum NAME [ROUNDS]: one of several programs in a job. Rank 0 prints who is there, and the sum of many
 * reductions among all. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, nranks, *app, flag;
	char mine[64], all[16][64];
	long sum = 0, rounds = argc > 2 ? atol(argv[2]) : 10;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &app, &flag);
	snprintf(mine, sizeof(mine), "%d:%s", flag ? *app : -1, argv[1]);
	MPI_Gather(mine, 64, MPI_CHAR, all, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
	for (long i = 0; i < rounds; i++) {
		long x = rank + i, s;
		MPI_Allreduce(&x, &s, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		sum += s;
		if (rounds > 100)
			usleep(1000);
	}
	for (int i = 0; rank == 0 && i < nranks; i++)
		printf("%s ", all[i]);
	if (rank == 0)
		printf("%ld\n", sum);
	MPI_Finalize();
	return 0;
}
