// SPDX-License-Identifier: BSD-3-Clause
/* spins STEPS: computes some milliseconds and then adds up with all others, in turns. After SIGUSR1
 * a process computes for ever, after SIGUSR2 it waits for a message that nobody sends, after SIGHUP
 * for a signal outside of MPI. Rank 0 prints how far it is, and the sum. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t forever, lonely, asleep;

static void on_signal(int sig)
{
	forever = forever || sig == SIGUSR1;
	lonely = lonely || sig == SIGUSR2;
	asleep = asleep || sig == SIGHUP;
}

static void wait_for_ever(int rank)
{
	int nothing;

	while (asleep)
		pause();
	if (lonely)
		MPI_Recv(&nothing, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double compute(double x)
{
	for (int i = 0; i < 1000000 || forever; i++)
		x = x * 0.999999 + 0.5;
	return x;
}

int main(int argc, char **argv)
{
	int rank, steps = argc > 1 ? atoi(argv[1]) : 100;
	double x = 1, sum = 0;

	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	signal(SIGHUP, on_signal);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int s = 0; s < steps; s++) {
		x = compute(x + rank);
		wait_for_ever(rank);
		MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		sum += x;
		if (rank == 0 && s % 20 == 0) {
			printf("step %d\n", s);
			fflush(stdout);
		}
	}
	if (rank == 0)
		printf("sum %.17g\n", sum);
	MPI_Finalize();
	return 0;
}
