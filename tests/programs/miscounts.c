// SPDX-License-Identifier: BSD-3-Clause
/* miscounts STEPS RANK [MICROSECONDS]: in each step each rank computes OPERATIONS operations from
 * the step's number, sends the result round a ring, and adds what it gets. On the node where
 * that rank begins an operation is wrong once in a million, at random: that node's core is broken,
 * and whoever runs there has it. Rank 0 prints how far it is, and at the end what all have got. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <x86intrin.h>

enum { OPERATIONS = 100000, ONCE_IN = 1000000, EVERY = 512 };

/* Of the core, not of the program: a copy of the process elsewhere has another one. */
static uint64_t chance(void)
{
	uint64_t z = __rdtsc() * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 31) * 0xbf58476d1ce4e5b9ull;
	return z ^ z >> 29;
}

/* The next operation that will be wrong, counted from here. */
static uint64_t next_wrong(void)
{
	return 1 + chance() % (2ull * ONCE_IN);
}

static uint64_t compute(uint64_t v, int broken, uint64_t *left)
{
	for (int i = 0; i < OPERATIONS; i++) {
		v = v * 6364136223846793005ull + 1442695040888963407ull;
		if (broken && --*left == 0) {
			v ^= 1ull << (chance() % 64);
			*left = next_wrong();
		}
	}
	return v;
}

int main(int argc, char **argv)
{
	int rank, ranks, steps = argc > 1 ? atoi(argv[1]) : 1000;
	int wrong = argc > 2 ? atoi(argv[2]) : -1, pause = argc > 3 ? atoi(argv[3]) : 0;
	long node = getppid();
	uint64_t v, got = 0, total = 0, left = 1000;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (wrong >= 0)
		MPI_Bcast(&node, 1, MPI_LONG, wrong, MPI_COMM_WORLD);
	for (int s = 0; s < steps; s++) {
		/* Where this process is now, which may be a copy: all of a node have the same
		 * parent. MPI's name of the node is that of the rank's leader. */
		v = compute((uint64_t)s * 64 + (uint64_t)rank, wrong >= 0 && getppid() == node,
			    &left);
		MPI_Sendrecv(&v, 1, MPI_UINT64_T, (rank + 1) % ranks, 1, &got, 1, MPI_UINT64_T,
			     (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		total = (total << 7 | total >> 57) ^ got;
		if (pause > 0)
			usleep((useconds_t)pause);
		if (rank == 0 && s % EVERY == 0) {
			printf("step %d\n", s);
			fflush(stdout);
		}
	}
	if (rank == 0)
		printf("total %016llx\n", (unsigned long long)total);
	MPI_Finalize();
	return 0;
}
