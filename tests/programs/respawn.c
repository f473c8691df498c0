// SPDX-License-Identifier: BSD-3-Clause
/* Children after children: respawn ROUNDS [CHILDREN [TALKS]]. Each round spawns children that add up numbers
 * with their parents, among themselves and over all, TALKS times, and end. What one child leaves behind (a variable,
 * an open file, an alarm, an ignored signal) the next one must not find. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(int good, const char *what)
{
	if (good)
		return;
	printf("WRONG: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

static void left_behind(void)
{
	struct sigaction before;
	check(!getenv("RESPAWN_LEFT"), "a variable of the last child");
	check(fcntl(200, F_GETFD) < 0, "an open file of the last child");
	check(alarm(0) == 0, "an alarm of the last child");
	sigaction(SIGUSR1, NULL, &before);
	check(before.sa_handler == SIG_DFL, "a signal that the last child ignored");
	setenv("RESPAWN_LEFT", "1", 1);
	int fd = open("/dev/null", O_RDONLY);
	dup2(fd, 200);
	close(fd);
	signal(SIGUSR1, SIG_IGN);
	alarm(1000);
}

/* Everybody on both sides: sums over the intercommunicator, over all, over each side; a ring. */
static long talk(MPI_Comm inter, int round, int high, int talks)
{
	MPI_Comm all;
	int rank, size, mine, here, there;
	long v, sum = 0;
	MPI_Comm_rank(inter, &mine);
	MPI_Comm_size(inter, &here);
	MPI_Comm_remote_size(inter, &there);
	v = (long)(mine + 1) * (high ? 1000 : 1) + round;
	for (int i = 0; i < talks; i++)
		MPI_Allreduce(&v, &sum, 1, MPI_LONG, MPI_SUM, inter);
	check(sum == (long)there * (there + 1) / 2 * (high ? 1 : 1000) + (long)round * there,
	      "the sum of the other side");
	MPI_Allreduce(&v, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	check(sum == (long)here * (here + 1) / 2 * (high ? 1000 : 1) + (long)round * here,
	      "the sum of this side");
	MPI_Intercomm_merge(inter, high, &all);
	MPI_Comm_rank(all, &rank);
	MPI_Comm_size(all, &size);
	int token = rank * 7 + round;
	MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % size, 5, (rank + size - 1) % size, 5,
			     all, MPI_STATUS_IGNORE);
	check(token == (rank + size - 1) % size * 7 + round, "the ring");
	static char large[300000];
	if (rank == 0)
		memset(large, round % 100 + 1, sizeof(large));
	MPI_Bcast(large, sizeof(large), MPI_CHAR, 0, all);
	check(large[sizeof(large) - 1] == round % 100 + 1, "the broadcast");
	for (int i = 0; i < talks; i++)
		MPI_Allreduce(&v, &sum, 1, MPI_LONG, MPI_SUM, all);
	MPI_Comm_free(&all);
	return sum;
}

int main(int argc, char **argv)
{
	MPI_Comm parent, inter;
	int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 1, children = argc > 2 ? atoi(argv[2]) : 3;
	int talks = argc > 3 ? atoi(argv[3]) : 1;
	long total = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL) {
		left_behind();
		talk(parent, rounds, 1, talks);
		MPI_Comm_disconnect(&parent);
		MPI_Finalize();
		return 0;
	}
	for (int i = 0; i < rounds; i++) {
		char arg[3][32];
		char *args[] = {arg[0], arg[1], arg[2], NULL};
		snprintf(arg[0], sizeof(arg[0]), "%d", i);
		snprintf(arg[1], sizeof(arg[1]), "%d", children);
		snprintf(arg[2], sizeof(arg[2]), "%d", talks);
		MPI_Comm_spawn(argv[0], args, children, MPI_INFO_NULL, i % size, MPI_COMM_WORLD, &inter,
			       MPI_ERRCODES_IGNORE);
		total += talk(inter, i, 0, talks);
		MPI_Comm_disconnect(&inter);
	}
	if (rank == 0)
		printf("%d parents, %d children, %d rounds: %ld\n", size, children, rounds, total);
	MPI_Finalize();
	return 0;
}
