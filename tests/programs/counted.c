// SPDX-License-Identifier: BSD-3-Clause
/* counted STEPS [MS]: a program whose every message is known. In each step every rank
 *   sends 8 B to the next rank by MPI_Send and receives as much by MPI_Recv    (even ranks first)
 *   sends 1,000 B by MPI_Isend, 100,000 B by MPI_Isend, receives them by MPI_Irecv, MPI_Waitall
 *   exchanges 40 B by MPI_Sendrecv
 *   starts a persistent send and receive of 5,000 B, and waits for each by MPI_Wait
 *   takes part in an allreduce of 3 doubles, a broadcast of 100 B from rank 0, and a barrier
 * and rests for MS milliseconds. Rank 0 prints a line per step. The number of ranks is even. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char out[100000], in[100000];

static void plain(int rank, int next, int before)
{
	if (rank % 2 == 0)
		MPI_Send(out, 8, MPI_BYTE, next, 1, MPI_COMM_WORLD);
	MPI_Recv(in, 8, MPI_BYTE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank % 2 == 1)
		MPI_Send(out, 8, MPI_BYTE, next, 1, MPI_COMM_WORLD);
}

static void nonblocking(int next, int before)
{
	static const int sizes[2] = {1000, 100000};
	MPI_Request r[4];

	for (int i = 0; i < 2; i++)
		MPI_Irecv(in, sizes[i], MPI_BYTE, before, 2 + i, MPI_COMM_WORLD, &r[i]);
	for (int i = 0; i < 2; i++)
		MPI_Isend(out, sizes[i], MPI_BYTE, next, 2 + i, MPI_COMM_WORLD, &r[2 + i]);
	MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
	int rank, size, steps = argc > 1 ? atoi(argv[1]) : 100, ms = argc > 2 ? atoi(argv[2]) : 0;
	MPI_Request kept[2];
	double sum[3] = {1, 2, 3};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int next = (rank + 1) % size, before = (rank + size - 1) % size;
	memset(out, rank, sizeof(out));
	MPI_Recv_init(in, 5000, MPI_BYTE, before, 5, MPI_COMM_WORLD, &kept[0]);
	MPI_Send_init(out, 5000, MPI_BYTE, next, 5, MPI_COMM_WORLD, &kept[1]);
	for (int step = 0; step < steps; step++) {
		plain(rank, next, before);
		nonblocking(next, before);
		MPI_Sendrecv(out, 40, MPI_BYTE, next, 4, in, 40, MPI_BYTE, before, 4,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Startall(2, kept);
		MPI_Wait(&kept[0], MPI_STATUS_IGNORE);
		MPI_Wait(&kept[1], MPI_STATUS_IGNORE);
		MPI_Allreduce(MPI_IN_PLACE, sum, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		MPI_Bcast(in, 100, MPI_BYTE, 0, MPI_COMM_WORLD);
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 0) {
			printf("step %d\n", step);
			fflush(stdout);
		}
		if (ms)
			usleep((useconds_t)ms * 1000);
	}
	MPI_Request_free(&kept[0]);
	MPI_Request_free(&kept[1]);
	MPI_Finalize();
	return 0;
}
