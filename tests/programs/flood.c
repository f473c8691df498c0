// SPDX-License-Identifier: BSD-3-Clause
/* flood COUNT MEGABYTES FILE: rank 0 sends COUNT messages of 1 to 16384 bytes, from so many
 * requests at once, and one of so many megabytes; rank 1 computes until FILE is there and only then
 * receives. "posted" when all have been handed over; "0 wrong" at the end. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static size_t bytes_of(int i)
{
	return 1 + (size_t)i * 7919 % 16384;
}

static unsigned char byte_of(int i, size_t k)
{
	return (unsigned char)(i * 31 + (int)(k % 251));
}

static void fill(unsigned char *p, int i, size_t bytes)
{
	for (size_t k = 0; k < bytes; k++)
		p[k] = byte_of(i, k);
}

static long wrong(const unsigned char *p, int i, size_t bytes)
{
	long n = 0;
	for (size_t k = 0; k < bytes; k++)
		n += p[k] != byte_of(i, k);
	return n;
}

int main(int argc, char **argv)
{
	int rank, count = argc > 1 ? atoi(argv[1]) : 100;
	size_t big = argc > 2 ? (size_t)atol(argv[2]) << 20 : 0, at = 0;
	long bad = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < count; i++)
		at += bytes_of(i);
	unsigned char *all = malloc(at + big + 1), *p = all;
	MPI_Request *req = malloc(((size_t)count + 1) * sizeof(*req));
	for (int i = 0; i <= count; p += i < count ? bytes_of(i) : 0, i++) {
		size_t bytes = i < count ? bytes_of(i) : big;
		if (rank == 0) {
			fill(p, i, bytes);
			MPI_Isend(p, (int)bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, &req[i]);
		}
	}
	if (rank == 0) {
		printf("posted\n");
		fflush(stdout);
	} else {
		while (argc > 3 && access(argv[3], F_OK))
			usleep(1000);
		p = all; /* from the last one on: all before it have to be kept */
		MPI_Recv(all + at, (int)big, MPI_BYTE, 0, count, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		bad += wrong(all + at, count, big);
		for (int i = 0; i < count; p += bytes_of(i), i++)
			MPI_Irecv(p, (int)bytes_of(i), MPI_BYTE, 0, i, MPI_COMM_WORLD, &req[i]);
	}
	MPI_Waitall(count + (rank == 0), req, MPI_STATUSES_IGNORE);
	p = all;
	for (int i = 0; rank == 1 && i < count; p += bytes_of(i), i++)
		bad += wrong(p, i, bytes_of(i));
	if (rank == 1)
		printf("%ld wrong\n", bad);
	free(req);
	free(all);
	MPI_Finalize();
	return bad != 0;
}
