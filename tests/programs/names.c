// SPDX-License-Identifier: BSD-3-Clause
/* Rank 0 publishes a name and has 400 MiB; the others have little, so they come back before it from a
 * rollback, and look the name up all the time: for so many milliseconds, at least once. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	char port[MPI_MAX_PORT_NAME] = "here", found[MPI_MAX_PORT_NAME];
	double seconds = argc > 1 ? atof(argv[1]) / 1000 : 0.1;
	size_t bytes = 400ul << 20;
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	unsigned *all = rank == 0 ? malloc(bytes) : NULL;
	for (size_t i = 0; all && i < bytes / sizeof(*all); i++)
		all[i] = (unsigned)(i * 2654435761u);
	if (rank == 0)
		MPI_Publish_name("a name", MPI_INFO_NULL, port);
	MPI_Barrier(MPI_COMM_WORLD);
	double end = MPI_Wtime() + seconds;
	do {
		MPI_Lookup_name("a name", MPI_INFO_NULL, found); /* which aborts */
		if (strcmp(found, "here") != 0)
			return 3;
	} while (MPI_Wtime() < end);
	MPI_Barrier(MPI_COMM_WORLD);
	for (size_t i = 0; all && i < bytes / sizeof(*all); i++)
		if (all[i] != (unsigned)(i * 2654435761u))
			return 4;
	if (rank == 0)
		puts("found");
	free(all);
	return MPI_Finalize();
}
