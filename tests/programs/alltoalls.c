// SPDX-License-Identifier: BSD-3-Clause
/* Alltoall and alltoallv of blocks about every size at which their way changes; says how many bytes
 * are wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static long wrong;

static unsigned char mark(int from, int to, int turn)
{
	return (unsigned char)(1 + (from * 31 + to * 7 + turn * 13) % 255);
}

static void expect_bytes(const unsigned char *at, int bytes, unsigned char value)
{
	for (int i = 0; i < bytes; i++)
		wrong += at[i] != value;
}

/* What from has for to: all alike, or none, half or all of it. */
static int bytes_of(int from, int to, int bytes, int ragged)
{
	return ragged ? (from + 2 * to) % 3 * bytes / 2 : bytes;
}

static void exchange(int bytes, int ragged, int turn)
{
	size_t all = (size_t)bytes * (size_t)size;
	unsigned char *out = malloc(all), *in = calloc(all, 1);
	int *n = malloc(4 * (size_t)size * sizeof(*n)), *m = n + size, *at = m + size;
	for (int i = 0; i < size; i++) {
		n[i] = bytes_of(rank, i, bytes, ragged);
		m[i] = bytes_of(i, rank, bytes, ragged);
		at[i] = i * bytes;
		memset(out + at[i], mark(rank, i, turn), (size_t)n[i]);
	}
	if (ragged)
		MPI_Alltoallv(out, n, at, MPI_BYTE, in, m, at, MPI_BYTE, MPI_COMM_WORLD);
	else
		MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++) {
		expect_bytes(in + at[i], m[i], mark(i, rank, turn));
		expect_bytes(in + at[i] + m[i], bytes - m[i], 0);
	}
	free(out);
	free(in);
	free(n);
}

int main(int argc, char **argv)
{
	const int sizes[] = {4096, 4097, 9000, 16384, 16385, 65537};
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	long all;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int turn = 0; turn < rounds; turn++)
		for (unsigned i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++)
			exchange(sizes[i / 2], i % 2, turn);
	MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%ld wrong\n", all);
	MPI_Finalize();
	return 0;
}
