// SPDX-License-Identifier: BSD-3-Clause
/* Ranks that spawn others, talk to them, and sum up: spawner [ROUNDS]. Started by itself it is the
 * parent; started by MPI_Comm_spawn it is a child. Every value is checked on both sides. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHILDREN = 3 };

static void check(int good, const char *what)
{
	if (good)
		return;
	printf("WRONG: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

/* Parents and children: an allreduce over the intercommunicator gives each side the other's sum;
 * then a ring over all of them, merged. */
static long talk(MPI_Comm inter, int rounds, int high)
{
	MPI_Comm all;
	int rank, size, mine, there, token;
	long sum, total = 0;
	MPI_Comm_rank(inter, &mine);
	MPI_Comm_remote_size(inter, &there);
	MPI_Intercomm_merge(inter, high, &all);
	MPI_Comm_rank(all, &rank);
	MPI_Comm_size(all, &size);
	for (int i = 0; i < rounds; i++) {
		long v = (long)(mine + 1) * (high ? 1000 : 1) + i;
		MPI_Allreduce(&v, &sum, 1, MPI_LONG, MPI_SUM, inter);
		long want = (long)there * (there + 1) / 2 * (high ? 1 : 1000) + (long)i * there;
		check(sum == want, "the sum of the other side");
		token = rank * 7 + i;
		MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % size, 5,
				     (rank + size - 1) % size, 5, all, MPI_STATUS_IGNORE);
		check(token == (rank + size - 1) % size * 7 + i, "the ring");
		MPI_Allreduce(&v, &sum, 1, MPI_LONG, MPI_SUM, all);
		total += sum;
	}
	MPI_Comm_free(&all);
	return total;
}

int main(int argc, char **argv)
{
	MPI_Comm parent, inter;
	int rank, size, codes[CHILDREN], *universe, flag, rounds = argc > 1 ? atoi(argv[1]) : 1;
	char arg[32];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL) {
		check(argc == 3 && !strcmp(argv[2], "child of two words"), "the arguments");
		check(size == CHILDREN, "the children's world");
		talk(parent, rounds, 1);
		MPI_Comm_disconnect(&parent);
		MPI_Comm_get_parent(&parent);
		check(parent == MPI_COMM_NULL, "no parent after disconnecting");
		MPI_Finalize();
		return 0;
	}
	snprintf(arg, sizeof(arg), "%d", rounds);
	char *args[] = {arg, "child of two words", NULL};
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &flag);
	check(flag && *universe >= size, "MPI_UNIVERSE_SIZE");
	memset(codes, 0xff, sizeof(codes));
	char *child = getenv("SPAWNER_CHILD"); /* that becomes this program */
	MPI_Comm_spawn(child ? child : argv[0], args, CHILDREN, MPI_INFO_NULL, size - 1, MPI_COMM_WORLD, &inter, codes);
	for (int i = 0; i < CHILDREN; i++)
		check(codes[i] == MPI_SUCCESS, "the error codes");
	long total = talk(inter, rounds, 0);
	MPI_Comm_disconnect(&inter);
	if (rank == 0)
		printf("%d parents, %d children, %d rounds: %ld\n", size, CHILDREN, rounds, total);
	MPI_Finalize();
	return 0;
}
