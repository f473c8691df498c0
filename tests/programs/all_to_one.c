/* SPDX-License-Identifier: BSD-3-Clause */
/* Everybody connects to rank 0 while that computes: it hears all of them at once. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, size, got = 0;
	long sum = 0, x;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank > 0) {
		x = rank;
		MPI_Send(&x, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD);
	} else {
		sleep(2);
		for (; got < size - 1; got++) {
			MPI_Recv(&x, 1, MPI_LONG, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			sum += x;
		}
		printf("%d of %d: %ld\n", got, size - 1, sum);
	}
	MPI_Finalize();
	return 0;
}
