/* Not send-deterministic: rank 1's first process looks for a message, its other one waits for it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int rank, flag, word = 7;
	const char *process = getenv("HALE_PROCESS");
	int first = process && atoi(process) == 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0) {
		MPI_Recv(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(&word, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
		printf("done\n");
	} else {
		if (first)
			MPI_Iprobe(0, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		else
			MPI_Probe(0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
		MPI_Recv(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Finalize();
	return 0;
}
