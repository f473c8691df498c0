// SPDX-License-Identifier: BSD-3-Clause
/* pingpong: two ranks, latency (half a round trip) and bandwidth of each size, one line each. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 4 << 20, WARM = 20 };

int main(int argc, char **argv)
{
	int rank;
	char *buffer = calloc(1, LARGEST);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int bytes = 8; bytes <= LARGEST; bytes *= 8) {
		int rounds = bytes < 65536 ? 2000 : 60;
		double begun = 0;
		for (int i = 0; i < rounds + WARM; i++) {
			if (i == WARM)
				begun = MPI_Wtime();
			if (rank == 0)
				MPI_Send(buffer, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
			MPI_Recv(buffer, bytes, MPI_BYTE, !rank, 1, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			if (rank == 1)
				MPI_Send(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
		}
		double one_way = (MPI_Wtime() - begun) / rounds / 2;
		if (rank == 0)
			printf("%d %.2f us %.1f MB/s\n", bytes, one_way * 1e6,
			       bytes / one_way / 1e6);
	}
	MPI_Finalize();
	free(buffer);
	return 0;
}
