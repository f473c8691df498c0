/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that is late for a checkpoint: when there is a file "hold", its second thread waits where
 * no signal reaches it, as parents do after vfork, until there is a file "go". Ends when there is a
 * file "stop". */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void until_there(const char *name)
{
	while (access(name, F_OK) != 0)
		usleep(1000);
}

static void *second(void *unused)
{
	until_there("hold");
	pid_t child = vfork();
	if (child == 0) {
		if (write(STDOUT_FILENO, "held\n", 5) == 5)
			until_there("go");
		_exit(0);
	}
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
