// SPDX-License-Identifier: BSD-3-Clause
/* crossings ROUNDS BYTES: collectives of several communicators under way at a time, and messages
 * beside them. Their later messages leave in an order that depends on what has arrived: in each
 * replica of a rank in another one. Every byte of the results is checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COMMS = 8, TAG = 3 };

static int rank, ranks, bytes;

static char byte_of(int from, int round, int what, int i)
{
	return (char)(from * 37 + round * 11 + what * 5 + i);
}

static int wrong_in(const char *in, int round, int what)
{
	int wrong = 0;

	for (int i = 0; i < bytes; i++) {
		char expected = 0;
		for (int from = 0; from < ranks; from++)
			expected ^= byte_of(from, round, what, i);
		wrong += in[i] != expected;
	}
	return wrong;
}

static void fill(char *out, int round, int what)
{
	for (int i = 0; i < bytes; i++)
		out[i] = byte_of(rank, round, what, i);
}

int main(int argc, char **argv)
{
	int rounds = atoi(argv[1]), wrong = 0, all;
	char *out[COMMS + 1], *in[COMMS + 1];
	MPI_Request q[COMMS + 2];
	MPI_Comm comm[COMMS];

	bytes = atoi(argv[2]);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 0; i <= COMMS; i++) {
		out[i] = malloc((size_t)bytes);
		in[i] = malloc((size_t)bytes);
		if (i < COMMS)
			MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
	}
	for (int round = 0; round < rounds; round++) {
		int step = 1 + round % (ranks - 1);
		int to = (rank + step) % ranks, from = (rank + ranks - step) % ranks;

		for (int i = 0; i <= COMMS; i++)
			fill(out[i], round, i);
		for (int i = 0; i < COMMS; i++)
			MPI_Iallreduce(out[i], in[i], bytes, MPI_BYTE, MPI_BXOR, comm[i], &q[i]);
		MPI_Irecv(in[COMMS], bytes, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &q[COMMS]);
		MPI_Isend(out[COMMS], bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD, &q[COMMS + 1]);
		MPI_Waitall(COMMS + 2, q, MPI_STATUSES_IGNORE);
		for (int i = 0; i < COMMS; i++)
			wrong += wrong_in(in[i], round, i);
		for (int i = 0; i < bytes; i++)
			wrong += in[COMMS][i] != byte_of(from, round, COMMS, i);
	}
	MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d rounds, %d wrong\n", rounds, all);
	MPI_Finalize();
	return 0;
}
