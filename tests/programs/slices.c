// SPDX-License-Identifier: BSD-3-Clause
/* slices STEPS [MICROSECONDS [FIRST]]: each rank has a field that it never changes, and sends slice
 * after slice of it round a ring. A wrong bit in the field is so sent sooner or later. Rank 0
 * prints what all have got. Each step takes so long at least. The first steps send the first slice
 * only. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SLICE = 4096, SLICES = 64 };
static uint64_t field[SLICES][SLICE];

int main(int argc, char **argv)
{
	static uint64_t got[SLICE];
	uint64_t sum = 0, total = 0;
	int rank, ranks, steps = argc > 1 ? atoi(argv[1]) : 640,
			 pause = argc > 2 ? atoi(argv[2]) : 0, first = argc > 3 ? atoi(argv[3]) : 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int i = 0; i < SLICES * SLICE; i++)
		(&field[0][0])[i] = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15ull ^ (uint64_t)rank;
	for (int s = 0; s < steps; s++) {
		MPI_Sendrecv(field[s < first ? 0 : s % SLICES], SLICE, MPI_UINT64_T,
			     (rank + 1) % ranks, 1, got, SLICE, MPI_UINT64_T,
			     (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (pause > 0)
			usleep((useconds_t)pause);
		for (int i = 0; i < SLICE; i++)
			sum = (sum << 7 | sum >> 57) ^ got[i];
		if (rank == 0 && s % 1024 == 0) {
			printf("step %d\n", s);
			fflush(stdout);
		}
	}
	MPI_Reduce(&sum, &total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("total %016llx\n", (unsigned long long)total);
	MPI_Finalize();
	return 0;
}
