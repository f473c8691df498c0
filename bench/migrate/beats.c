// SPDX-License-Identifier: BSD-3-Clause
/* Ranks that own so many MiB each, write so many of its pages and then meet, beat after beat. Rank
 * 0 prints "beat N <monotonic seconds> <gap ms>": what one of them waits for, all of them notice.
 *
 *   beats MIB PERCENT BEAT_MS     until a file "stop" exists; the last line is "sum X"
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 512, pages = mib * 256;
	double percent = argc > 2 ? atof(argv[2]) : 0;
	long beat_ms = argc > 3 ? atol(argv[3]) : 10, n = 0;
	uint64_t x = 88172645463325252ull, sum = 0, all = 0;
	uint64_t *p =
	    mmap(NULL, pages << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timespec t = {beat_ms / 1000, beat_ms % 1000 * 1000000};
	int rank, stop = 0, any = 0;

	if (p == MAP_FAILED)
		return 1;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (size_t i = 0; i < pages * 512; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		p[i] = x;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("ready %.6f\n", now());
	for (double last = now(); !any; n++) {
		size_t todo = (size_t)((double)pages * percent / 100);

		for (size_t k = 0; k < todo; k++)
			p[((size_t)n * 7919 + k * 97) % pages * 512] += 1;
		nanosleep(&t, NULL);
		stop = rank == 0 && access("stop", F_OK) == 0;
		MPI_Allreduce(&stop, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
		double at = now();
		if (rank == 0)
			printf("beat %ld %.6f %.3f\n", n, at, (at - last) * 1e3);
		last = at;
	}
	for (size_t i = 0; i < pages * 512; i++)
		sum = sum * 31 + p[i];
	/* what was written depends on the number of beats, which all ranks share */
	sum ^= (uint64_t)n;
	MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("beats %ld sum %lx\n", n, (unsigned long)all);
	MPI_Finalize();
	return 0;
}
