/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that is late for a checkpoint: when there is a file "hold", its second thread waits where
 * no signal reaches it, as parents do after vfork, until there is a file "go". Ends when there is a
 * file "stop". */
#define _GNU_SOURCE /* clone */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static void until_there(const char *name)
{
	while (access(name, F_OK) != 0)
		usleep(1000);
}

static int held(void *unused)
{
	if (write(STDOUT_FILENO, "held\n", 5) == 5)
		until_there("go");
	_exit(0);
}

static void *second(void *unused)
{
	static _Alignas(16) char stack[65536];

	until_there("hold");
	/* a child without an exit signal is none that a checkpoint waits for */
	clone(held, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, NULL);
	until_there("stop");
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int provided;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	pthread_create(&thread, NULL, second, NULL);
	until_there("stop");
	pthread_join(thread, NULL);
	puts("done");
	MPI_Finalize();
	return 0;
}
