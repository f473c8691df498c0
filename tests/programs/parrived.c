/* Rank 1 tells rank 0 how often it has asked for a partition before that arrived: a number that the
 * replicas of a rank have to agree on. Arguments: rounds, microseconds until the partition is ready.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PARTS = 2, EACH = 4 };

static void sender(MPI_Request *q, int *buffer, int round, useconds_t wait)
{
	for (int i = 0; i < PARTS * EACH; i++)
		buffer[i] = round + i;
	MPI_Start(q);
	usleep(wait);
	MPI_Pready_range(0, PARTS - 1, *q);
	MPI_Wait(q, MPI_STATUS_IGNORE);
}

/* Returns how often it has asked in vain. */
static long receiver(MPI_Request *q, const int *buffer, int round)
{
	long asked = 0;
	int there = 0;

	MPI_Start(q);
	for (; !there; asked++)
		MPI_Parrived(*q, 0, &there);
	MPI_Parrived(*q, 1, &there);
	for (int i = 0; i < PARTS * EACH; i++)
		if (!there || buffer[i] != round + i)
			MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Wait(q, MPI_STATUS_IGNORE);
	MPI_Parrived(*q, 0, &there); /* not active: yes */
	return there ? asked : -1;
}

int main(int argc, char **argv)
{
	int rank, wrong = 0, buffer[PARTS * EACH], rounds = atoi(argv[1]);
	useconds_t wait = (useconds_t)atoi(argv[2]);
	MPI_Request q;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		MPI_Psend_init(buffer, PARTS, EACH, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
			       &q);
	else
		MPI_Precv_init(buffer, PARTS, EACH, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
			       &q);
	for (int i = 0; i < rounds; i++) {
		long asked;

		if (rank == 0) {
			sender(&q, buffer, i, wait);
			MPI_Recv(&asked, 1, MPI_LONG, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			wrong += asked < 1;
		} else {
			asked = receiver(&q, buffer, i);
			MPI_Send(&asked, 1, MPI_LONG, 0, 2, MPI_COMM_WORLD);
		}
	}
	MPI_Request_free(&q);
	if (rank == 0)
		printf("%d rounds, %d wrong\n", rounds, wrong);
	MPI_Finalize();
	return 0;
}
