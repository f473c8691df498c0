// SPDX-License-Identifier: BSD-3-Clause
/* speed [PATTERNS [BYTES]]: each rank of the first half and one of the second, which is on the
 * other node; patterns of each size, one line each:
 *
 *   p BYTES us      ping-pong: half a round trip
 *   w BYTES MB/s    windows of 64 from one to the other, then an answer
 *   b BYTES MB/s    windows of 64 in both directions at once, both counted
 *   r BYTES M/s     messages a second: as w, for small ones
 *   z 0 %           of a core that a rank uses while it waits for a message for a second
 *
 * Each is measured for about the same time, whatever the size. Rank 0 prints the mean of the pairs.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LARGEST = 4 << 20, WINDOW = 64 };
static const double seconds = 0.06;
static const int sizes[] = {8, 64, 512, 4096, 32768, 65536, 262144, 1 << 20, 4 << 20};

static int rank, size, other, first, only;
static char *out, *in;
static MPI_Status statuses[2 * WINDOW];

static void pingpong(int bytes)
{
	if (first)
		MPI_Send(out, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
	MPI_Recv(in, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!first)
		MPI_Send(out, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
}

static void window(int bytes, int sending, int receiving)
{
	MPI_Request r[2 * WINDOW];
	int n = 0, slots = LARGEST / bytes < WINDOW ? LARGEST / bytes : WINDOW;
	for (int i = 0; i < WINDOW && receiving; i++)
		MPI_Irecv(in + (size_t)(i % slots) * bytes, bytes, MPI_BYTE, other, 2,
			  MPI_COMM_WORLD, &r[n++]);
	for (int i = 0; i < WINDOW && sending; i++)
		MPI_Isend(out + (size_t)(i % slots) * bytes, bytes, MPI_BYTE, other, 2,
			  MPI_COMM_WORLD, &r[n++]);
	MPI_Waitall(n, r, statuses);
	if (receiving)
		MPI_Send(out, 0, MPI_BYTE, other, 3, MPI_COMM_WORLD);
	if (sending)
		MPI_Recv(in, 0, MPI_BYTE, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void once(char pattern, int bytes)
{
	if (pattern == 'p')
		pingpong(bytes);
	else
		window(bytes, first || pattern == 'b', !first || pattern == 'b');
}

/* Seconds for one, mean over the pairs. */
static double measure(char pattern, int bytes)
{
	int rounds = 2;
	for (;;) {
		MPI_Barrier(MPI_COMM_WORLD);
		double begun = MPI_Wtime(), sum;
		for (int i = 0; i < rounds; i++)
			once(pattern, bytes);
		double took = (MPI_Wtime() - begun) / rounds;
		MPI_Allreduce(&took, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		double mean = sum / size;
		if (mean * rounds >= seconds * 0.7)
			return mean;
		double more = seconds / (mean * rounds);
		rounds = (int)(rounds * (more > 10 ? 10 : more)) + 1;
	}
}

static void pattern_run(char pattern)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int bytes = sizes[i];
		if ((pattern == 'r' && bytes > 512) || (only && bytes != only))
			continue;
		double t = measure(pattern, bytes), figure = t / 2 * 1e6;
		if (pattern == 'w')
			figure = (double)bytes * WINDOW / t / 1e6;
		else if (pattern == 'b')
			figure = 2.0 * bytes * WINDOW / t / 1e6;
		else if (pattern == 'r')
			figure = WINDOW / t / 1e6;
		if (rank == 0)
			printf("%c %d %.4g\n", pattern, bytes, figure);
	}
}

static double cpu_seconds(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void waiting_run(void)
{
	double used, sum;
	MPI_Barrier(MPI_COMM_WORLD);
	used = cpu_seconds();
	if (first) {
		usleep(1000000);
		used = 0;
		MPI_Send(out, 8, MPI_BYTE, other, 4, MPI_COMM_WORLD);
	} else {
		MPI_Recv(in, 8, MPI_BYTE, other, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		used = cpu_seconds() - used;
	}
	MPI_Allreduce(&used, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("z 0 %.4g\n", 100 * sum / (size / 2));
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	first = rank < size / 2;
	other = first ? rank + size / 2 : rank - size / 2;
	only = argc > 2 ? atoi(argv[2]) : 0;
	out = calloc(2, LARGEST);
	in = calloc(2, LARGEST);
	if (size % 2 || !out || !in) {
		if (rank == 0)
			fprintf(stderr, "speed needs an even number of ranks, and memory\n");
		MPI_Abort(MPI_COMM_WORLD, 64);
	}
	/* touched: a page that is only zeroes is no memory yet */
	memset(out, 1, 2 * LARGEST);
	memset(in, 1, 2 * LARGEST);
	for (const char *p = argc > 1 ? argv[1] : "pwbr"; *p; p++)
		*p == 'z' ? waiting_run() : pattern_run(*p);
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}
