// SPDX-License-Identifier: BSD-3-Clause
/* Persistent collectives with arrays of types and of 64-bit counts, which the program overwrites
 * after the initialisation. Prints how many values were wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8, ROUNDS = 3 };

static int rank, size, wrong, in[MOST], out[MOST];

static void run(MPI_Request *r, int from_all)
{
	for (int k = 0; k < ROUNDS; k++) {
		for (int i = 0; i < size; i++) {
			out[i] = rank * 100 + i * 10 + k;
			in[i] = -1;
		}
		MPI_Start(r);
		MPI_Wait(r, MPI_STATUS_IGNORE);
		for (int i = 0; i < size; i++)
			wrong += in[i] != (from_all ? i * 100 + rank * 10 + k : i * 100 + k);
	}
	MPI_Request_free(r);
}

int main(int argc, char **argv)
{
	int counts[MOST], displs[MOST];
	MPI_Count large[MOST];
	MPI_Aint places[MOST], bytes[MOST];
	MPI_Datatype types[MOST];
	MPI_Request r;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int way = 0; way < 4; way++) {
		for (int i = 0; i < size; i++) {
			counts[i] = 1;
			displs[i] = i * (int)sizeof(int);
			large[i] = 1;
			places[i] = i;
			bytes[i] = displs[i];
			types[i] = MPI_INT;
		}
		if (way == 0)
			MPI_Alltoallw_init(out, counts, displs, types, in, counts, displs, types,
					   MPI_COMM_WORLD, MPI_INFO_NULL, &r);
		else if (way == 1)
			MPI_Alltoallv_init_c(out, large, places, MPI_INT, in, large, places, MPI_INT,
					     MPI_COMM_WORLD, MPI_INFO_NULL, &r);
		else if (way == 2)
			MPI_Alltoallw_init_c(out, large, bytes, types, in, large, bytes, types,
					     MPI_COMM_WORLD, MPI_INFO_NULL, &r);
		else
			MPI_Allgatherv_init_c(out, 1, MPI_INT, in, large, places, MPI_INT,
					      MPI_COMM_WORLD, MPI_INFO_NULL, &r);
		memset(counts, 0x55, sizeof(counts));
		memset(displs, 0x55, sizeof(displs));
		memset(large, 0x55, sizeof(large));
		memset(places, 0x55, sizeof(places));
		memset(bytes, 0x55, sizeof(bytes));
		memset(types, 0x55, sizeof(types));
		run(&r, way < 3);
	}
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d wrong\n", wrong);
	MPI_Finalize();
	return 0;
}
