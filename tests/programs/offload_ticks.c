// SPDX-License-Identifier: BSD-3-Clause
/* offload_ticks OBJECT PIPES MOVES WORK [FOLDER]: counters on both sides that must agree.
 *
 * A thread for each pipeline calls tick, which counts in private memory of the device process and in
 * a buffer, and returns both; the host counts, too. Meanwhile the process is paused, captured,
 * resumed, swapped out and in, and moved between devices, at random moments. MOVES 0: until
 * it gets SIGTERM. Built with TICKS_MPI: in each rank, and all end together. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hale_offload.h"
#include "snapify.h"
#ifdef TICKS_MPI
#include <mpi.h>
#endif

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "line %d: %s: %s: %s\n", __LINE__, #x,                     \
				strerrorname_np(errno), hale_offload_why());                       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static hale_process_t *process;
static hale_buffer_t shared;
static int tick, work;
static atomic_int end;
static atomic_long total;

static void on_term(int sig)
{
	end = 1;
}

/* How far all ranks are; they end when one is to. */
static long agree(void)
{
#ifdef TICKS_MPI
	long mine[2] = {total, end}, all[2];

	MPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (all[1])
		end = 1;
	return all[0];
#else
	return total;
#endif
}

static void *count(void *arg)
{
	int which[2] = {(int)(long)arg, work};
	hale_pipeline_t *q = hale_pipeline_create(process);
	long result[2], copy[64], mine = 0;
	unsigned seed = (unsigned)which[0];

	CHECK(q);
	while (!end) {
		CHECK(hale_run(q, tick, &shared, 1, which, sizeof(which), result, sizeof(result)) == 0);
		mine++;
		total++;
		if (result[0] != mine || result[1] != mine) {
			fprintf(stderr, "pipeline %d: host %ld, device %ld, buffer %ld\n", which[0], mine,
				result[0], result[1]);
			exit(1);
		}
		if (rand_r(&seed) % 8 == 0) { /* copies are under way, too */
			CHECK(hale_buffer_read(process, shared, 0, copy, sizeof(copy)) == 0);
			CHECK(copy[which[0]] == mine);
		}
	}
	CHECK(hale_pipeline_destroy(q) == 0);
	return NULL;
}

/* A snapshot that is not used; the process goes on. */
static void capture(const char *folder)
{
	snapify_t s = {.m_snapshot_path = folder, .m_process = process};

	CHECK(snapify_pause(&s) == 0);
	CHECK(snapify_capture(&s, false) == 0);
	CHECK(snapify_wait(&s) == 0);
	CHECK(snapify_resume(&s) == 0);
}

static void move(int k, const char *folder)
{
	int device = k % hale_device_count();
	snapify_t *s;

	switch (k % 3) {
	case 0:
		capture(folder);
		break;
	case 1:
		CHECK((s = snapify_swapout(folder, process)));
		CHECK(snapify_swapin(s, device) == process);
		break;
	default:
		CHECK(snapify_migration(process, device) == process);
	}
	CHECK(k % 3 == 0 || hale_process_device(process) == device);
}

int main(int argc, char **argv)
{
	int pipes = atoi(argv[2]), moves = atoi(argv[3]);
	pthread_t thread[64];
	unsigned seed = 1;
	int rank = 0;

#ifdef TICKS_MPI
	int given;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#endif
	work = atoi(argv[4]);
	signal(SIGTERM, on_term);
	process = hale_process_create(0, argv[1], 8 << 20);
	CHECK(process && (tick = hale_function_find(process, "tick")) >= 0);
	CHECK((shared = hale_buffer_create(process, 4096)));
	for (long i = 0; i < pipes; i++)
		CHECK(pthread_create(&thread[i], NULL, count, (void *)i) == 0);
	for (int k = 0; k < moves; k++) {
		usleep((useconds_t)rand_r(&seed) % 20000);
		move(k, argv[5]);
	}
	while (moves == 0 && !end) {
		usleep(50000);
		long now = agree();

		if (rank == 0)
			printf("%ld\n", now);
		fflush(stdout);
	}
	end = 1;
	for (int i = 0; i < pipes; i++)
		pthread_join(thread[i], NULL);
	hale_process_destroy(process);
	if (rank == 0)
		printf("good %ld\n", (long)total);
#ifdef TICKS_MPI
	MPI_Finalize();
#endif
	return total < pipes;
}
