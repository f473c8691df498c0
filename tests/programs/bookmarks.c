// SPDX-License-Identifier: BSD-3-Clause
/* bookmarks ROUNDS SLOW MICROSECONDS: the program fragment of seed 000, figure 3.5, in rounds. B
 * (rank 1) sends A (rank 0) two messages by MPI_Isend, then waits for both; A sends two back. The
 * replica in slot SLOW sleeps so long in each round, the other one a third of that (2: both do), so
 * that bookmarks of the two replicas differ. Each prints what it has got. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 100 };

static void compute(uint64_t *field, uint64_t seed)
{
	for (int i = 0; i < WORDS; i++)
		field[i] = (field[i] << 5 | field[i] >> 59) ^ (seed + (uint64_t)i);
}

int main(int argc, char **argv)
{
	const char *process = getenv("HALE_PROCESS");
	int rounds = atoi(argv[1]), slow = atoi(argv[2]), rank, slot;
	uint64_t mine[2][WORDS] = {{0}}, theirs[2][WORDS], sum = 0;
	useconds_t pause = (useconds_t)atoi(argv[3]);
	MPI_Request r[2];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	slot = process ? atoi(process) / 2 : 0;
	for (int k = 0; k < rounds; k++) {
		usleep(slot == slow ? pause : pause / 3);
		compute(mine[0], (uint64_t)k);
		compute(mine[1], sum);
		for (int m = 0; m < 2; m++) {
			if (rank == k % 2)
				MPI_Irecv(theirs[m], WORDS, MPI_UINT64_T, !rank, m, MPI_COMM_WORLD,
					  &r[m]);
			else
				MPI_Isend(mine[m], WORDS, MPI_UINT64_T, !rank, m, MPI_COMM_WORLD,
					  &r[m]);
		}
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		for (int i = 0; rank == k % 2 && i < WORDS; i++)
			sum = (sum << 7 | sum >> 57) ^ theirs[0][i] ^ theirs[1][i] * 3;
		if (rank == 0 && k % 50 == 0) {
			printf("round %d\n", k);
			fflush(stdout);
		}
	}
	printf("rank %d has %016llx\n", rank, (unsigned long long)sum);
	MPI_Finalize();
	return 0;
}
