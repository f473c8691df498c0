// SPDX-License-Identifier: BSD-3-Clause
/* Messages of MPI-4, for the standard's ABI: rings by MPI_Isendrecv, MPI_Isendrecv_replace and in
 * partitions. mpi4 ROUNDS; prints how many values were wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARTITIONS = 6, EACH = 400 };

static int value(int rank, int round, int i)
{
	return rank * 1000003 + round * 1009 + i;
}

int main(int argc, char **argv)
{
	static int out[PARTITIONS * EACH], in[PARTITIONS * EACH];
	int rank, size, flag, all, bad = 0, rounds = argc > 1 ? atoi(argv[1]) : 5;
	MPI_Request r, part[2];
	MPI_Status s;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int to = (rank + 1) % size, from = (rank + size - 1) % size;
	MPI_Psend_init(out, PARTITIONS, EACH, MPI_INT, to, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &part[0]);
	/* as many elements, in other partitions */
	MPI_Precv_init(in, 2, PARTITIONS * EACH / 2, MPI_INT, from, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
		       &part[1]);
	for (int k = 0; k < rounds; k++) {
		int mine = value(rank, k, 0), got = -1;
		MPI_Isendrecv(&mine, 1, MPI_INT, to, 3, &got, 1, MPI_INT, MPI_ANY_SOURCE, 3,
			      MPI_COMM_WORLD, &r);
		MPI_Wait(&r, &s);
		bad += got != value(from, k, 0) || s.MPI_SOURCE != from || s.MPI_TAG != 3;
		MPI_Isendrecv_replace(&mine, 1, MPI_INT, to, 4, from, 4, MPI_COMM_WORLD, &r);
		for (flag = 0; !flag;)
			MPI_Test(&r, &flag, &s);
		bad += mine != value(from, k, 0);
		for (int i = 0; i < PARTITIONS * EACH; i++) {
			out[i] = value(rank, k, i);
			in[i] = -1;
		}
		MPI_Startall(2, part);
		MPI_Pready_range(3, 5, part[0]);
		MPI_Pready(0, part[0]);
		MPI_Pready_list(2, (int[]){2, 1}, part[0]);
		for (flag = 0; !flag;)
			MPI_Parrived(part[1], 1, &flag);
		MPI_Waitall(2, part, MPI_STATUSES_IGNORE);
		for (int i = 0; i < PARTITIONS * EACH; i++)
			bad += in[i] != value(from, k, i);
	}
	MPI_Request_free(&part[0]);
	MPI_Request_free(&part[1]);
	MPI_Reduce(&bad, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d wrong\n", all);
	MPI_Finalize();
	return 0;
}
