/* SPDX-License-Identifier: BSD-3-Clause */
/* relocate BYTES ITERATIONS AFTER: latency and bandwidth between two ranks, one line an iteration,
 * "ITERATION LATENCY_US MB/S", as seed 001, 2.4.5 measures them. After iteration AFTER a checkpoint
 * is asked for (0: never). The job that took it waits there to be ended; one that was restarted
 * from it goes on.
 *
 * An iteration: 2000 round trips, then 100 windows of 64 messages and an answer each. */
#include <hale/hale.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TRIPS = 2000, WINDOWS = 100, WINDOW = 64 };

static int rank, bytes;
static char *out, *in;

static double latency_us(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	double begun = MPI_Wtime();
	for (int i = 0; i < TRIPS; i++) {
		if (rank == 0)
			MPI_Send(out, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(in, bytes, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
	}
	return (MPI_Wtime() - begun) / TRIPS / 2 * 1e6;
}

static double bandwidth(void)
{
	MPI_Request r[WINDOW];
	MPI_Barrier(MPI_COMM_WORLD);
	double begun = MPI_Wtime();
	for (int i = 0; i < WINDOWS; i++) {
		for (int k = 0; k < WINDOW; k++)
			if (rank == 0)
				MPI_Isend(out, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &r[k]);
			else
				MPI_Irecv(in, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &r[k]);
		MPI_Waitall(WINDOW, r, MPI_STATUSES_IGNORE);
		if (rank == 0)
			MPI_Recv(in, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else
			MPI_Send(out, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
	}
	return (double)bytes * WINDOW * WINDOWS / (MPI_Wtime() - begun) / 1e6;
}

int main(int argc, char **argv)
{
	int size, iterations = argc > 2 ? atoi(argv[2]) : 10, after = argc > 3 ? atoi(argv[3]) : 5;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	bytes = argc > 1 ? atoi(argv[1]) : 2048;
	if (size != 2 || bytes < 1)
		MPI_Abort(MPI_COMM_WORLD, 64);
	out = calloc(1, (size_t)bytes);
	in = calloc(1, (size_t)bytes);
	for (int i = 1; i <= iterations; i++) {
		double us = latency_us(), mb = bandwidth();
		if (rank == 0)
			printf("%d %.4g %.4g\n", i, us, mb);
		fflush(stdout);
		if (i != after)
			continue;
		/* rank 1 waits in the next iteration's barrier */
		if (rank == 0 && HALE_Checkpoint() != HALE_CKPT_RESTARTED)
			for (;;)
				pause();
	}
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}
