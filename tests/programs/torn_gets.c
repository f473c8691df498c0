// SPDX-License-Identifier: BSD-3-Clause
/* torn_gets BYTES: rank 0 gets so much of rank 1's memory, which that one changes as soon as the
 * epoch is over, or the lock is its own. Prints how many gets saw that. For two ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 10 };

static long count, *window, *got;
static MPI_Win w;

static void fill(long value)
{
	for (long i = 0; i < count; i++)
		window[i] = value;
}

static int is_torn(long value)
{
	for (long i = 0; i < count; i++)
		if (got[i] != value)
			return 1;
	return 0;
}

static int in_epochs(int rank, MPI_Group other)
{
	int torn = 0;

	for (int round = 0; round < ROUNDS; round++) {
		fill(round);
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 1) {
			MPI_Win_post(other, 0, w);
			MPI_Win_wait(w);
			fill(-1);
		} else {
			MPI_Win_start(other, 0, w);
			MPI_Get(got, (int)count, MPI_LONG, 1, 0, (int)count, MPI_LONG, w);
			MPI_Win_complete(w);
			torn += is_torn(round);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	return torn;
}

static int under_locks(int rank)
{
	int torn = 0;

	for (int round = 0; round < ROUNDS; round++) {
		fill(round);
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 0) {
			MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, w);
			MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
			MPI_Get(got, (int)count, MPI_LONG, 1, 0, (int)count, MPI_LONG, w);
			MPI_Win_unlock(1, w);
			torn += is_torn(round);
		} else {
			MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, w);
			fill(-1);
			MPI_Win_unlock(1, w);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	return torn;
}

int main(int argc, char **argv)
{
	int rank, other, epochs, locks;
	MPI_Group all, one;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	count = atol(argv[1]) / (long)sizeof(long);
	window = malloc((size_t)count * sizeof(long));
	got = malloc((size_t)count * sizeof(long));
	other = 1 - rank;
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &other, &one);
	MPI_Win_create(window, count * (long)sizeof(long), sizeof(long), MPI_INFO_NULL,
		       MPI_COMM_WORLD, &w);
	epochs = in_epochs(rank, one);
	locks = under_locks(rank);
	if (rank == 0)
		printf("torn: %d in epochs, %d under locks\n", epochs, locks);
	MPI_Win_free(&w);
	MPI_Finalize();
	return 0;
}
