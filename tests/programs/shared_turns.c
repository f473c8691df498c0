// SPDX-License-Identifier: BSD-3-Clause
/* shared_turns: makes shared windows one after the other, while older ones stay, and looks
 * whether all ranks see the same memory in each, until there is a file that STOP names. Prints how
 * much was wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEPT = 4, WORDS = 100 };

static int rank, ranks;

static long one_wrong(MPI_Win w, int *mine, int turn)
{
	long wrong = 0;

	for (int i = 0; i < WORDS; i++)
		mine[i] = turn * 100 + rank;
	MPI_Win_fence(0, w);
	for (int r = 0; r < ranks; r++) {
		MPI_Aint bytes;
		int unit, *theirs;

		MPI_Win_shared_query(w, r, &bytes, &unit, &theirs);
		for (int i = 0; i < WORDS; i++)
			wrong += theirs[i] != turn * 100 + r;
	}
	return wrong;
}

int main(int argc, char **argv)
{
	MPI_Win w[KEPT] = {MPI_WIN_NULL, MPI_WIN_NULL, MPI_WIN_NULL, MPI_WIN_NULL};
	int *mine[KEPT], turn = 0, more = 1;
	long wrong = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (; more; turn++) {
		int k = turn % KEPT;

		if (w[k] != MPI_WIN_NULL)
			MPI_Win_free(&w[k]);
		MPI_Win_allocate_shared(WORDS * sizeof(int), sizeof(int), MPI_INFO_NULL,
					MPI_COMM_WORLD, &mine[k], &w[k]);
		wrong += one_wrong(w[k], mine[k], turn);
		more = access(getenv("STOP"), F_OK) != 0;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	for (int k = 0; k < KEPT; k++)
		if (w[k] != MPI_WIN_NULL)
			MPI_Win_free(&w[k]);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d windows, %ld wrong\n", turn, wrong);
	MPI_Finalize();
	return 0;
}
