// SPDX-License-Identifier: BSD-3-Clause
/* Partitioned messages match in the order of their initialisations, per tag and communicator,
 * whatever the order of their starts. Two ranks; partitioned ROUNDS [FILE] prints how much was
 * wrong; it goes on until FILE is there. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PARTS = 4, EACH = 50, ALL = PARTS * EACH, MESSAGES = 4 };

static int buffers[MESSAGES][ALL], wrong;

static int value(int message, int round)
{
	return message * 1000 + round;
}

static void send_one(MPI_Request *r, int message, int round)
{
	MPI_Start(r);
	for (int i = 0; i < ALL; i++)
		buffers[message][i] = value(message, round);
	MPI_Pready_range(1, PARTS - 1, *r);
	MPI_Pready(0, *r);
}

/* messages 0 and 1 have one tag, 2 another, 3 the same in another communicator */
static void sender(MPI_Comm comm, MPI_Comm other, int rounds)
{
	static const int order[MESSAGES] = {1, 3, 2, 0};
	MPI_Request r[MESSAGES];
	MPI_Psend_init(buffers[2], PARTS, EACH, MPI_INT, 1, 8, comm, MPI_INFO_NULL, &r[2]);
	MPI_Psend_init(buffers[3], PARTS, EACH, MPI_INT, 1, 7, other, MPI_INFO_NULL, &r[3]);
	for (int m = 0; m < 2; m++)
		MPI_Psend_init(buffers[m], PARTS, EACH, MPI_INT, 1, 7, comm, MPI_INFO_NULL, &r[m]);
	for (int k = 0; k < rounds; k++) {
		for (int i = 0; i < MESSAGES; i++)
			send_one(&r[order[i]], order[i], k);
		MPI_Waitall(MESSAGES, r, MPI_STATUSES_IGNORE);
	}
	for (int m = 0; m < MESSAGES; m++)
		MPI_Request_free(&r[m]);
}

static void receiver(MPI_Comm comm, MPI_Comm other, int rounds)
{
	static const int tags[MESSAGES] = {7, 7, 8, 7};
	MPI_Request r[MESSAGES];
	MPI_Status s[MESSAGES];
	for (int m = 0; m < MESSAGES; m++)
		MPI_Precv_init(buffers[m], 1, ALL, MPI_INT, 0, tags[m], m == 3 ? other : comm,
			       MPI_INFO_NULL, &r[m]);
	for (int k = 0; k < rounds; k++) {
		MPI_Startall(MESSAGES, r);
		MPI_Waitall(MESSAGES, r, s);
		for (int m = 0; m < MESSAGES; m++) {
			wrong += s[m].MPI_SOURCE != 0 || s[m].MPI_TAG != tags[m];
			for (int i = 0; i < ALL; i++)
				wrong += buffers[m][i] != value(m, k);
		}
	}
	for (int m = 0; m < MESSAGES; m++)
		MPI_Request_free(&r[m]);
}

/* A request that is freed before it starts takes its place with it; a communicator is made with the
 * tag of a message meanwhile. */
static void unstarted(int rank, MPI_Comm comm)
{
	MPI_Request r[2];
	MPI_Group group;
	MPI_Comm made;
	int in[2] = {-1, -1}, out[2] = {1, 2};
	for (int i = 0; i < 2; i++) {
		if (rank == 0)
			MPI_Psend_init(&out[i], 1, 1, MPI_INT, 1, 5, comm, MPI_INFO_NULL, &r[i]);
		else
			MPI_Precv_init(&in[i], 1, 1, MPI_INT, 0, 5, comm, MPI_INFO_NULL, &r[i]);
	}
	MPI_Request_free(&r[0]);
	MPI_Start(&r[1]);
	if (rank == 0)
		MPI_Pready(0, r[1]);
	MPI_Comm_group(comm, &group);
	MPI_Comm_create_group(comm, group, 5, &made);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	wrong += rank == 1 && (in[0] != -1 || in[1] != 2);
	MPI_Request_free(&r[1]);
	MPI_Comm_free(&made);
	MPI_Group_free(&group);
}

int main(int argc, char **argv)
{
	int rank, more, rounds = argc > 1 ? atoi(argv[1]) : 3;
	MPI_Comm other;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	do {
		if (rank == 0)
			sender(MPI_COMM_WORLD, other, rounds);
		else
			receiver(MPI_COMM_WORLD, other, rounds);
		more = argc > 2 && access(argv[2], F_OK) != 0;
		MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
	} while (more);
	unstarted(rank, other);
	MPI_Comm_free(&other);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d wrong\n", wrong);
	MPI_Finalize();
	return 0;
}
