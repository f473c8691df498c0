/* SPDX-License-Identifier: BSD-3-Clause */
/* aloof SECONDS: ranks whose programs compute when others speak to them for the first time.
 *
 * Even ranks send to the odd ones, at once, and wait; these compute before they look. Then odd
 * ranks send to the even ones (other pairs, so first contacts again), and compute before their next
 * call. Rank 0 prints what it has in the end. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void compute(double seconds)
{
	struct timespec pause = {(time_t)seconds, (long)((seconds - (long)seconds) * 1e9)};

	while (nanosleep(&pause, &pause) != 0) {
	}
}

int main(int argc, char **argv)
{
	int rank, size, got = -1, all = 0;
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	MPI_Request r;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int half = size / 2, peer = (rank + half) % size;
	if (rank < half) {
		MPI_Ssend(&rank, 1, MPI_INT, peer, 1, MPI_COMM_WORLD);
	} else {
		compute(seconds);
		MPI_Recv(&got, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	/* the next one over there */
	int to = (peer + 1) % half + (peer >= half ? half : 0);
	int from = rank >= half ? (rank - half + half - 1) % half : (rank + half - 1) % half + half;
	if (rank >= half) {
		MPI_Isend(&rank, 1, MPI_INT, to, 2, MPI_COMM_WORLD, &r);
		compute(seconds);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(&got, 1, MPI_INT, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Reduce(&got, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("sum %d\n", all);
	MPI_Finalize();
	return 0;
}
