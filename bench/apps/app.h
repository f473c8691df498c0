// SPDX-License-Identifier: BSD-3-Clause
/* What the hybrid programs of this folder share: MPI between processes, OpenMP tasks inside of
 * them. Each prints a checksum of all bits of its result on stdout, and on stderr the seconds of
 * its loop without set-up, by the clock and of all threads together. With BENCH_REPEAT=N it does so
 * N times, each from the beginning. */
#ifndef BENCH_APP_H
#define BENCH_APP_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static int rank, ranks;
static long app_left = 1;

static inline void app_begin(int *argc, char ***argv)
{
	int level;

	MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (getenv("BENCH_REPEAT"))
		app_left = atol(getenv("BENCH_REPEAT"));
}

/* The i-th argument, or what holds without it. */
static inline long app_number(int argc, char **argv, int i, long without)
{
	return argc > i ? atol(argv[i]) : without;
}

static inline void *app_memory(size_t bytes)
{
	void *p = NULL;

	if (posix_memalign(&p, 4096, (bytes + 4095) / 4096 * 4096) != 0) {
		fprintf(stderr, "no memory for %zu bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	memset(p, 0, (bytes + 4095) / 4096 * 4096);
	return p;
}

static inline double app_noise(uint64_t i)
{
	i = (i + 1) * 0x9e3779b97f4a7c15ull;
	i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9ull;
	return (double)(i >> 11) * 0x1p-53;
}

static inline uint64_t app_hash(const void *at, size_t bytes)
{
	uint64_t h = 14695981039346656037ull, w;

	for (size_t i = 0; i + 8 <= bytes; i += 8) {
		memcpy(&w, (const char *)at + i, 8);
		h = (h ^ w) * 1099511628211ull;
		h ^= h >> 29;
	}
	return h;
}

/* Seconds that the process's threads have computed. */
static inline double app_cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double app_began_cpu;

static inline double app_start(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
	app_began_cpu = app_cpu();
	return MPI_Wtime();
}

static inline void app_end(const char *name, uint64_t mine, double seconds)
{
	uint64_t all[1024] = {0}, h = 0;
	double longest, cpu = app_cpu() - app_began_cpu, cpus;

	MPI_Reduce(&cpu, &cpus, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Gather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++)
		h = h * 31 + all[r];
	if (rank == 0) {
		printf("%s %016llx\n", name, (unsigned long long)h);
		fprintf(stderr, "seconds %.6f cpu %.6f\n", longest, cpus);
		fflush(stdout); /* the next one may not come to its end */
	}
}

/* Once more? */
static inline int app_again(void)
{
	if (--app_left > 0)
		return 1;
	MPI_Finalize();
	return 0;
}

#endif
