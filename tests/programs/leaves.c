/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that is in the library when a checkpoint asks it to stop, leaves it at once, and does
 * not call it again before the checkpoint is over: who asked it has to do the checkpoint after all.
 * MPI_THREAD_SERIALIZED: only that thread calls MPI, the main one waits for it.
 *
 * leaves ROUNDS     begins a round when the file "go.ROUND" is there
 */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static int ends[2], rounds;

/* A receive with a time-out is never begun again by the kernel: it ends when a signal comes. */
static void op(void *in, void *inout, int *len, MPI_Datatype *type)
{
	char byte;
	(void)in, (void)inout, (void)len, (void)type;
	printf("inside\n");
	if (recv(ends[0], &byte, 1, 0) < 0 && errno == EINTR)
		printf("asked\n");
}

static void *calls(void *arg)
{
	MPI_Op mine;
	MPI_Op_create(op, 1, &mine);
	for (int i = 0; i < rounds; i++) {
		int a = 1, b = 2;
		char go[32];
		snprintf(go, sizeof(go), "go.%d", i);
		while (access(go, F_OK))
			usleep(20000);
		MPI_Reduce_local(&a, &b, 1, MPI_INT, mine);
	}
	while (access("stop", F_OK))
		usleep(20000);
	MPI_Op_free(&mine);
	return arg;
}

/* The main thread, which gets the request, goes on after the other one, which has left by then. */
static void come_last(void)
{
	cpu_set_t all, one;
	CPU_ZERO(&one);
	sched_getaffinity(0, sizeof(all), &all);
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

int main(int argc, char **argv)
{
	struct timeval limit = {.tv_sec = 10}; /* should the signal come just before it */
	pthread_t t;
	int level;
	rounds = argc > 1 ? atoi(argv[1]) : 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
	come_last();
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) ||
	    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    pthread_create(&t, NULL, calls, NULL))
		return 1;
	setpriority(PRIO_PROCESS, 0, 10);
	pthread_join(t, NULL);
	printf("done\n");
	MPI_Finalize();
	return 0;
}
