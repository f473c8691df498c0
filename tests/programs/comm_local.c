// SPDX-License-Identifier: BSD-3-Clause
/* Ranks 0 and 1 merge an intercommunicator with the others and free it. Then rank 1 alone uses the
 * same numbers of communicators again, with others. After a checkpoint and the death of a rank all
 * use them: nobody may wait for what rank 1 has forgotten. Four ranks. */
#include <hale/hale.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { NUMBERS = 4, TAG = 5, ROUNDS = 100 };

#pragma weak HALE_Checkpoint

/* More communicators at a time than the intercommunicator had numbers. */
static void use_numbers(MPI_Comm of)
{
	MPI_Comm made[NUMBERS];
	for (int i = 0; i < NUMBERS; i++) {
		MPI_Comm_dup(of, &made[i]);
		MPI_Barrier(made[i]);
	}
	for (int i = 0; i < NUMBERS; i++)
		MPI_Comm_free(&made[i]);
}

/* What goes on beside the program, the end of communicators, comes to its end. */
static void settle(void)
{
	int found;
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	int rank;
	MPI_Comm half, inter, merged, late;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &late);
	MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, TAG, &inter);
	MPI_Intercomm_merge(inter, rank / 2, &merged);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&inter);
	settle();
	if (rank > 0)
		use_numbers(late);
	settle();
	HALE_Checkpoint();
	HALE_Checkpoint(); /* so the first one is complete */
	if (rank == 3 && unlink(argv[1]) == 0)
		raise(SIGKILL);
	use_numbers(MPI_COMM_WORLD);
	if (rank == 0)
		printf("ok\n");
	MPI_Finalize();
	return 0;
}
