// SPDX-License-Identifier: BSD-3-Clause
/* As speed.c's patterns p, w and b of 8 B, 512 B and 4 KiB, where other processes of the machine
 * can't be sent away: short batches, of which the tenth that took least stands for an undisturbed
 * machine; its slowest one is printed. Two ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 600, WINDOW = 64, LARGEST = 4096, TRIPS = 20 };
static char out[WINDOW * LARGEST], in[WINDOW * LARGEST];
static double took[BATCHES];
static int rank;

static int before(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void trips(int bytes)
{
	for (int k = 0; k < TRIPS; k++) {
		if (rank == 0)
			MPI_Send(out, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
		MPI_Recv(in, bytes, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
	}
}

static void window(int bytes, int sends, int receives)
{
	MPI_Request r[2 * WINDOW];
	MPI_Status status[2 * WINDOW];
	int n = 0;
	for (int k = 0; k < WINDOW && receives; k++)
		MPI_Irecv(in + k * bytes, bytes, MPI_BYTE, !rank, 2, MPI_COMM_WORLD, &r[n++]);
	for (int k = 0; k < WINDOW && sends; k++)
		MPI_Isend(out + k * bytes, bytes, MPI_BYTE, !rank, 2, MPI_COMM_WORLD, &r[n++]);
	MPI_Waitall(n, r, status);
	if (receives)
		MPI_Send(out, 0, MPI_BYTE, !rank, 3, MPI_COMM_WORLD);
	if (sends)
		MPI_Recv(in, 0, MPI_BYTE, !rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void measure(char pattern, int bytes)
{
	for (int i = 0; i < BATCHES; i++) {
		double begun = MPI_Wtime();
		if (pattern == 'p')
			trips(bytes);
		else
			window(bytes, pattern == 'b' || rank == 0, pattern == 'b' || rank == 1);
		took[i] = MPI_Wtime() - begun;
	}
	qsort(took, BATCHES, sizeof(took[0]), before);
	double t = took[BATCHES / 10];
	if (rank == 0)
		printf("%c %d %.4g\n", pattern, bytes,
		       pattern == 'p' ? t / TRIPS / 2 * 1e6
				      : (pattern == 'b' ? 2.0 : 1.0) * bytes * WINDOW / t / 1e6);
}

int main(int argc, char **argv)
{
	const int sizes[] = {8, 512, LARGEST};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	memset(out, 1, sizeof(out));
	memset(in, 1, sizeof(in));
	for (const char *p = "pwb"; *p; p++)
		for (int i = 0; i < 3; i++)
			measure(*p, sizes[i]);
	MPI_Finalize();
	return 0;
}
