/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks for a checkpoint itself, and dies once after it: <hale/hale.h> as a program uses it that
 * must run elsewhere too. */
#include <hale/hale.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
#include <signal.h>

#pragma weak HALE_Checkpoint

int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!HALE_Checkpoint) {
		printf("rank %d: no Hale here\n", rank);
		MPI_Finalize();
		return 0;
	}
	/* everybody asks at once: one checkpoint, or a few, but never a failure */
	int failed = HALE_Checkpoint() == HALE_CKPT_FAILED, sum = 0, how = 0;
	int mine = 41 + rank;
	MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	/* one asks, the others wait in a collective */
	if (rank == 0)
		how = HALE_Checkpoint();
	MPI_Bcast(&how, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (how == HALE_CKPT_CONTINUED) {
		/* the second comes after the first is whole: there is something to go back to */
		if (rank == 0)
			how = HALE_Checkpoint();
		MPI_Bcast(&how, 1, MPI_INT, 0, MPI_COMM_WORLD);
		if (how == HALE_CKPT_CONTINUED && rank == 1)
			kill(getpid(), SIGKILL);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (failed || how == HALE_CKPT_FAILED)
		sum = -1;
	printf("rank %d: %s sum %d\n", rank, how == HALE_CKPT_RESTARTED ? "restarted" : "went on",
	       sum);
	MPI_Finalize();
	return 0;
}
