/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 has eight receives that match anything, and starts each again when it is complete. All
 * other ranks send it numbered messages, small and long ones. MPI_Waitany and MPI_Testany give
 * those of one sender in order: programs rely on it (HPCC's MPIRandomAccess), though the standard
 * does not say so. Prints how many were not. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RECEIVES = 8, MESSAGES = 400, INTS = 1000 };

static int received(int senders, int out_of_order)
{
	static int buffer[RECEIVES][INTS];
	MPI_Request r[RECEIVES];
	MPI_Status st;
	int *next = calloc((size_t)senders + 1, sizeof(*next)), left = senders * MESSAGES;

	for (int i = 0; i < RECEIVES; i++)
		MPI_Irecv(buffer[i], INTS, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			  &r[i]);
	for (int index = MPI_UNDEFINED, flag = 0; left > 0;) {
		if (left % 20 == 0)
			usleep(2000); /* several come */
		if (left % 2)
			MPI_Waitany(RECEIVES, r, &index, &st);
		else
			for (flag = 0; !flag;)
				MPI_Testany(RECEIVES, r, &index, &flag, &st);
		out_of_order += buffer[index][0] != next[st.MPI_SOURCE]++;
		left--;
		MPI_Irecv(buffer[index], INTS, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			  &r[index]);
	}
	for (int i = 0; i < RECEIVES; i++) {
		MPI_Cancel(&r[i]);
		MPI_Wait(&r[i], MPI_STATUS_IGNORE);
	}
	free(next);
	return out_of_order;
}

int main(int argc, char **argv)
{
	static int message[INTS];
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0)
		printf("%d messages out of order\n", received(size - 1, 0));
	for (int i = 0; rank > 0 && i < MESSAGES; i++) {
		message[0] = i;
		MPI_Send(message, i % 3 ? 1 : INTS, MPI_INT, 0, 0, MPI_COMM_WORLD);
	}
	MPI_Finalize();
	return 0;
}
