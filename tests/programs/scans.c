// SPDX-License-Identifier: BSD-3-Clause
/* scans ROUNDS NODES: scans and exclusive scans, one right after the other, of ranks that are dealt
 * out to the nodes in turn. "0 wrong" by rank 0. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 2000 };
static double in[MOST], out[MOST];

/* Elements are sums of small whole numbers, so exact in any order. */
static long wrong(int ranks, int count)
{
	long n = 0;
	for (int i = 0; ranks > 0 && i < count; i++)
		n += out[i] != ranks * (ranks - 1) / 2.0 + (double)ranks * (i % 7);
	return n;
}

int main(int argc, char **argv)
{
	int rank, size, rounds = atoi(argv[1]), nodes = atoi(argv[2]);
	long bad = 0, all;
	MPI_Comm dealt;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int each = size / nodes;
	MPI_Comm_split(MPI_COMM_WORLD, 0, rank % each * nodes + rank / each, &dealt);
	MPI_Comm_rank(dealt, &rank);
	for (int k = 0; k < rounds; k++) {
		int count = k % 3 ? 1 + k * 977 % MOST : MOST;
		for (int i = 0; i < count; i++)
			out[i] = in[i] = rank + i % 7;
		if (k % 2)
			MPI_Exscan(in, out, count, MPI_DOUBLE, MPI_SUM, dealt);
		else
			MPI_Scan(k % 4 ? in : MPI_IN_PLACE, out, count, MPI_DOUBLE, MPI_SUM, dealt);
		bad += wrong(k % 2 ? rank : rank + 1, count);
	}
	MPI_Reduce(&bad, &all, 1, MPI_LONG, MPI_SUM, 0, dealt);
	if (rank == 0)
		printf("%ld wrong\n", all);
	MPI_Comm_free(&dealt);
	MPI_Finalize();
	return 0;
}
