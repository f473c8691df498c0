/* SPDX-License-Identifier: BSD-3-Clause */
/* From before MPI_Init to after MPI_Finalize: life LEVEL. The same output under every MPI. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, order;

static void where(const char *when)
{
	int begun = -1, over = -1;

	MPI_Initialized(&begun);
	MPI_Finalized(&over);
	if (rank == 0)
		printf("%s: initialized %d finalized %d\n", when, begun, over);
}

static int at_end(MPI_Comm comm, int key, void *value, void *extra)
{
	int sum = -1, one = 1, over = -1;

	/* MPI still works here (MPI-3.1 8.7.1) */
	MPI_Finalized(&over);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("callback %d: attribute %s, finalized %d, MPI works %d\n", ++order,
		       (char *)value, over, sum >= 1);
	return MPI_SUCCESS;
}

static void *other_thread(void *arg)
{
	MPI_Is_thread_main(arg);
	return NULL;
}

static void questions(int asked)
{
	int provided, main_here = -1, main_there = -1, n = 0, version = 0, subversion = 0;
	char name[MPI_MAX_PROCESSOR_NAME], library[MPI_MAX_LIBRARY_VERSION_STRING];
	double t = MPI_Wtime();
	pthread_t thread;
	char *memory = NULL;

	MPI_Query_thread(&provided);
	MPI_Is_thread_main(&main_here);
	if (asked == MPI_THREAD_MULTIPLE) {
		pthread_create(&thread, NULL, other_thread, &main_there);
		pthread_join(thread, NULL);
	}
	MPI_Get_version(&version, &subversion);
	MPI_Get_processor_name(name, &n);
	int good_name = n > 0 && n == (int)strlen(name);
	MPI_Get_library_version(library, &n);
	int good_library = n > 0 && strlen(library) > 0;
	MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &memory);
	memset(memory, 1, 1 << 20);
	MPI_Free_mem(memory);
	MPI_Alloc_mem(0, MPI_INFO_NULL, &memory);
	MPI_Pcontrol(1, "anything");
	if (rank)
		return;
	printf("provided %d enough %d main here %d there %d\n", provided, provided >= asked,
	       main_here, main_there);
	printf("version %d.%d names %d %d zero bytes %d\n", version, subversion, good_name,
	       good_library, memory == NULL);
	printf("time %d %d\n", MPI_Wtime() >= t, MPI_Wtick() > 0 && MPI_Wtick() < 0.1);
}

int main(int argc, char **argv)
{
	int level = argc > 1 ? atoi(argv[1]) : -1, provided = -1, first, second, begun, over, buf;

	MPI_Initialized(&begun);
	MPI_Finalized(&over);
	if (level < 0)
		MPI_Init(&argc, &argv);
	else
		MPI_Init_thread(NULL, NULL, level, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0)
		printf("before: initialized %d finalized %d\n", begun, over);
	where("between");
	questions(level);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &first, NULL);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &second, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, first, "first");
	MPI_Comm_set_attr(MPI_COMM_SELF, second, "second");
	/* left unfreed and unfinished on purpose: MPI_Finalize copes */
	MPI_Request unused;
	MPI_Recv_init(&buf, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &unused);
	MPI_Finalize();
	where("after");
	return 0;
}
