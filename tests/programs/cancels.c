// SPDX-License-Identifier: BSD-3-Clause
/* cancels STEPS MICROSECONDS, two ranks: in each step rank 0 posts a receive from any source, looks
 * for its message, and takes it back. Only then it asks rank 1 for one, whose envelope that receive
 * would have taken. Each step takes so long at least. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void compute(long us)
{
	struct timespec t;
	double until;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	until = (double)t.tv_sec + (double)t.tv_nsec * 1e-9 + (double)us * 1e-6;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while ((double)t.tv_sec + (double)t.tv_nsec * 1e-9 < until);
}

static int step_of_asker(int step)
{
	int value = -1, other = -1, flag;
	MPI_Request early, late;
	MPI_Status status;

	MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &early);
	if (step % 2)
		MPI_Irecv(&other, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &late);
	MPI_Test(&early, &flag, MPI_STATUS_IGNORE);
	MPI_Cancel(&early);
	MPI_Wait(&early, &status);
	MPI_Test_cancelled(&status, &flag);
	MPI_Send(&step, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
	if (step % 2)
		MPI_Wait(&late, MPI_STATUS_IGNORE);
	else
		MPI_Recv(&other, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!flag || value != -1)
		printf("step %d: the receive was not taken back\n", step);
	return other;
}

int main(int argc, char **argv)
{
	int rank, steps = argc > 1 ? atoi(argv[1]) : 100;
	long us = argc > 2 ? atol(argv[2]) : 0;
	unsigned sum = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < steps; i++) {
		int value;

		compute(us);
		if (rank == 0) {
			sum = sum * 31 + (unsigned)step_of_asker(i);
			continue;
		}
		MPI_Recv(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		value *= 7;
		MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("sum %u\n", sum);
	MPI_Finalize();
	return 0;
}
