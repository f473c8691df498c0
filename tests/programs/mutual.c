/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_THREAD_MULTIPLE: the main thread holds a mutex of the program's, and computes, until the file
 * "go" is there; another one is in the library meanwhile, in a user's operation that wants that
 * mutex. Ends when the file "stop" is there. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void until(const char *file)
{
	while (access(file, F_OK))
		usleep(20000);
}

static void op(void *in, void *inout, int *len, MPI_Datatype *type)
{
	(void)in, (void)inout, (void)len, (void)type;
	printf("inside\n");
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void *calls(void *arg)
{
	MPI_Op mine;
	int a = 1, b = 2;
	MPI_Op_create(op, 1, &mine);
	MPI_Reduce_local(&a, &b, 1, MPI_INT, mine);
	MPI_Op_free(&mine);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;
	int level;
	setvbuf(stdout, NULL, _IOLBF, 0);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	pthread_mutex_lock(&mutex);
	if (pthread_create(&t, NULL, calls, NULL))
		return 1;
	until("go");
	pthread_mutex_unlock(&mutex);
	pthread_join(t, NULL);
	until("stop");
	printf("done\n");
	MPI_Finalize();
	return 0;
}
