// SPDX-License-Identifier: BSD-3-Clause
/* nearby ring|all ROUNDS: each rank talks to its two neighbours, or to all ranks; what arrives is
 * checked. Each prints how many TCP connections it has then, before MPI_Finalize makes more. */
#include <fcntl.h>
#include <mpi.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BYTES = 20000 };
static int rank, ranks;

static void fail(int round, int from)
{
	fprintf(stderr, "rank %d round %d: wrong bytes from rank %d\n", rank, round, from);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char byte_of(int from, int to, int round)
{
	return (unsigned char)(from * 31 + to * 7 + round + 1);
}

static void exchange(int with_next, int with_previous, int round)
{
	static unsigned char out[BYTES], in[BYTES];
	memset(out, byte_of(rank, with_next, round), sizeof(out));
	MPI_Sendrecv(out, BYTES, MPI_BYTE, with_next, 1, in, BYTES, MPI_BYTE, with_previous, 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < BYTES; i++)
		if (in[i] != byte_of(with_previous, rank, round))
			fail(round, with_previous);
}

static void all(int round)
{
	unsigned char *out = malloc((size_t)ranks * 1000), *in = malloc((size_t)ranks * 1000);
	for (int i = 0; i < ranks; i++)
		memset(out + i * 1000, byte_of(rank, i, round), 1000);
	MPI_Alltoall(out, 1000, MPI_BYTE, in, 1000, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < ranks * 1000; i++)
		if (in[i] != byte_of(i / 1000, rank, round))
			fail(round, i / 1000);
	free(out);
	free(in);
}

static int connections(void)
{
	int n = 0;
	for (int fd = 0; fd < 1024; fd++) {
		struct sockaddr_in sa;
		socklen_t length = sizeof(sa);
		n += getpeername(fd, (struct sockaddr *)&sa, &length) == 0 &&
		     sa.sin_family == AF_INET;
	}
	return n;
}

/* Without messages: by files in the folder that all of them run in. */
static void all_are_here(void)
{
	char name[32];
	snprintf(name, sizeof(name), "here.%d", rank);
	close(open(name, O_CREAT | O_WRONLY, 0600));
	for (int i = 0; i < ranks; i++) {
		snprintf(name, sizeof(name), "here.%d", i);
		while (access(name, F_OK) != 0)
			usleep(1000);
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	for (int k = 0; k < rounds; k++) {
		if (strcmp(argv[1], "all") == 0) {
			all(k);
			continue;
		}
		exchange((rank + 1) % ranks, (rank + ranks - 1) % ranks, k);
		exchange((rank + ranks - 1) % ranks, (rank + 1) % ranks, k);
	}
	printf("rank %d: %d connections\n", rank, connections());
	fflush(stdout);
	all_are_here();
	MPI_Finalize();
	return 0;
}
