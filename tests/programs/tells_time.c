// SPDX-License-Identifier: BSD-3-Clause
/* tells_time ROUNDS: rank 0 sends the others what libc tells it: clocks, processor times, random
 * bytes. Replicas of rank 0 are told different things unless somebody sees to it. Another thread
 * and a child read clocks meanwhile, as often as they like. No clock may go back. */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COUNTERS = 14, RANDOM = 1500, NS = 1000000000 };

static int64_t of_clock(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * NS + t.tv_nsec;
}

static int64_t of_time(struct timeval t)
{
	return (int64_t)t.tv_sec * 1000000 + t.tv_usec;
}

static void tell(int64_t v[COUNTERS], unsigned char bytes[RANDOM])
{
	struct timespec raw;
	struct timeval day;
	struct rusage u;
	struct tms t;
	int n = 0;

	v[n++] = of_clock(CLOCK_REALTIME);
	v[n++] = of_clock(CLOCK_MONOTONIC);
	v[n++] = of_clock(CLOCK_PROCESS_CPUTIME_ID);
	v[n++] = of_clock(CLOCK_THREAD_CPUTIME_ID);
	v[n++] = of_clock(CLOCK_MONOTONIC_RAW);
	syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &raw);
	v[n++] = (int64_t)raw.tv_sec * NS + raw.tv_nsec;
	gettimeofday(&day, NULL);
	v[n++] = of_time(day);
	v[n++] = time(NULL);
	v[n++] = clock();
	v[n++] = times(&t);
	v[n++] = t.tms_utime + t.tms_stime;
	getrusage(RUSAGE_SELF, &u);
	v[n++] = of_time(u.ru_utime);
	v[n++] = u.ru_minflt;
	v[n++] = (int64_t)(MPI_Wtime() * NS);
	if (getrandom(bytes, RANDOM, 0) != RANDOM || getentropy(bytes, 64) != 0)
		MPI_Abort(MPI_COMM_WORLD, 3);
}

static volatile int over;

static void *look(void *unused)
{
	while (!over) {
		of_clock(CLOCK_MONOTONIC);
		usleep(100);
	}
	return NULL;
}

static void child_looks(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		of_clock(CLOCK_MONOTONIC);
		_exit(time(NULL) < 0);
	}
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	int rank, ranks, rounds = argc > 1 ? atoi(argv[1]) : 100, back = 0;
	int64_t v[COUNTERS], before[COUNTERS] = {0};
	unsigned char bytes[RANDOM];
	pthread_t other;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	pthread_create(&other, NULL, look, NULL);
	for (int round = 0; round < rounds; round++) {
		tell(v, bytes);
		if (round % 16 == 0)
			child_looks();
		for (int i = 0; i < COUNTERS; i++)
			back += v[i] < before[i];
		memcpy(before, v, sizeof(v));
		for (int to = 1; rank == 0 && to < ranks; to++) {
			MPI_Send(v, COUNTERS, MPI_INT64_T, to, 1, MPI_COMM_WORLD);
			MPI_Send(bytes, RANDOM, MPI_BYTE, to, 2, MPI_COMM_WORLD);
		}
		if (rank > 0) {
			MPI_Recv(v, COUNTERS, MPI_INT64_T, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Recv(bytes, RANDOM, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
		usleep(1000);
	}
	MPI_Allreduce(MPI_IN_PLACE, &back, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d rounds, %d went back\n", rounds, back);
	over = 1;
	pthread_join(other, NULL);
	MPI_Finalize();
	return 0;
}
