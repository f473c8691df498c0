// SPDX-License-Identifier: BSD-3-Clause
/* passive: rank 0 makes no call of MPI until the others have told it to through its window, by all
 * kinds of one-sided operations under locks; first it computes, then it sleeps in a system call
 * that nothing may interrupt. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORDS = 4096, LARGE = 100000 };

static void target(volatile long *mine, int others)
{
	struct timespec nap = {1, 0}, left = {0, 0};
	unsigned long work = 1;
	while (mine[0] < others)
		work = work * 6364136223846793005u + 1;
	if (nanosleep(&nap, &left))
		printf("the sleep was interrupted\n");
	printf("%ld, %ld, %ld%s\n", mine[0], mine[1], mine[2], work ? "" : "!");
}

static void origin(MPI_Win win, int rank)
{
	long one = 1, old = -1, seen;
	long *many = malloc(LARGE * sizeof(long)), *back = calloc(LARGE, sizeof(long));
	for (long i = 0; i < LARGE; i++)
		many[i] = i * rank;
	for (int i = 0; i < 20; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		MPI_Get(&seen, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win);
		MPI_Win_flush(0, win);
		seen++;
		MPI_Put(&seen, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win);
		MPI_Win_unlock(0, win);
	}
	MPI_Win_lock_all(0, win);
	MPI_Put(many, LARGE, MPI_LONG, 0, WORDS + (MPI_Aint)LARGE * rank, LARGE, MPI_LONG, win);
	MPI_Win_flush(0, win);
	MPI_Get(back, LARGE, MPI_LONG, 0, WORDS + (MPI_Aint)LARGE * rank, LARGE, MPI_LONG, win);
	MPI_Win_flush(0, win);
	if (memcmp(many, back, LARGE * sizeof(long)))
		printf("rank %d got something else than it put\n", rank);
	MPI_Accumulate(&one, 1, MPI_LONG, 0, 2, 1, MPI_LONG, MPI_SUM, win);
	MPI_Win_flush(0, win);
	MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, win);
	MPI_Win_unlock_all(win);
	if (old < 0)
		printf("rank %d fetched nothing\n", rank);
	free(many);
	free(back);
}

int main(int argc, char **argv)
{
	int rank, n;
	long *mine = NULL;
	MPI_Win win;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	MPI_Aint bytes = rank ? 0 : (WORDS + (MPI_Aint)LARGE * n) * (MPI_Aint)sizeof(long);
	mine = bytes ? calloc(1, (size_t)bytes) : NULL;
	MPI_Win_create(mine, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	if (rank)
		origin(win, rank);
	else
		target(mine, n - 1);
	MPI_Win_free(&win);
	free(mine);
	MPI_Finalize();
	return 0;
}
