/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that nobody reads for a while: when there is a file "send", rank 0 sends COUNT of them
 * to rank 1, and goes on looking for messages; the others compute until there is a file "read". */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 200, WORDS = 256 };

static int there(const char *name)
{
	return access(name, F_OK) == 0;
}

static int filled(const int *message, int value)
{
	int i = 0;
	while (i < WORDS && message[i] == value + i)
		i++;
	return i == WORDS;
}

static void send_all(void)
{
	static int message[COUNT][WORDS];
	MPI_Request req[COUNT];
	int flag;

	while (!there("send"))
		usleep(1000);
	for (int i = 0; i < COUNT; i++) {
		for (int k = 0; k < WORDS; k++)
			message[i][k] = i + k;
		MPI_Isend(message[i], WORDS, MPI_INT, 1, 0, MPI_COMM_WORLD, &req[i]);
	}
	puts("sent");
	fflush(stdout);
	while (!there("read")) {
		MPI_Iprobe(1, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		usleep(1000);
	}
	MPI_Waitall(COUNT, req, MPI_STATUSES_IGNORE);
}

static void read_all(void)
{
	int message[WORDS], wrong = 0;

	for (int i = 0; i < COUNT; i++) {
		memset(message, 0, sizeof(message));
		MPI_Recv(message, WORDS, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		wrong += !filled(message, i);
	}
	printf("%d messages, %d wrong\n", COUNT, wrong);
}

int main(int argc, char **argv)
{
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		send_all();
	} else {
		puts("computes");
		fflush(stdout);
		while (!there("read"))
			usleep(1000);
	}
	if (rank == 1)
		read_all();
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	return 0;
}
