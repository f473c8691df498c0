/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that comes later than the others, the last one: to the first barrier when there is a file
 * "first", and to MPI_Finalize when there is a file "last". The program ends when there is a file
 * "end". */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static void until_there(const char *name)
{
	while (access(name, F_OK) != 0)
		usleep(1000);
}

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == size - 1)
		until_there("first");
	for (int i = 0; i < 3; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	if (rank == size - 1) {
		puts("all are here");
		fflush(stdout);
		until_there("last");
	}
	MPI_Finalize();
	until_there("end");
	return 0;
}
