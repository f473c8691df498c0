/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs do wrong, one thing at a time: misuse WHAT */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static void nothing(union sigval v)
{
	(void)v;
}

static void wait_for_file(const char *name)
{
	while (access(name, F_OK) != 0)
		usleep(2000);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "nothing";
	int rank = -1;
	if (is(what, "before-init"))
		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (is(what, "abort") && rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 7);
	if (is(what, "exit-without-finalize") && rank == 1)
		exit(3);
	if (is(what, "exit-0-without-finalize") && rank == 1)
		exit(0);
	if (is(what, "bad-rank")) {
		int x = 0;
		MPI_Send(&x, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
	}
	if (is(what, "bad-rank-returned")) {
		int x = 0, class_ = 0;
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		int e = MPI_Send(&x, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
		MPI_Error_class(e, &class_);
		if (rank == 0)
			printf("class %s\n", class_ == MPI_ERR_RANK ? "MPI_ERR_RANK" : "other");
	}
	if (is(what, "segv") && rank == 1)
		raise(SIGSEGV);
	if (is(what, "timer") && rank == 1) {
		struct sigevent e = {.sigev_notify = SIGEV_THREAD};
		timer_t timer;
		e.sigev_notify_function = nothing;
		if (timer_create(CLOCK_MONOTONIC, &e, &timer))
			return 99;
		printf("timer\n");
		fflush(stdout);
		wait_for_file("stop");
		timer_delete(timer);
	}
	if (is(what, "socket") && rank == 1) {
		int s = socket(AF_NETLINK, SOCK_RAW, 0); /* to the kernel: no image holds it */
		if (s < 0)
			return 99;
		printf("socket is %d\n", s);
		fflush(stdout);
		wait_for_file("stop");
		close(s);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (is(what, "spin")) {
		if (rank == 0)
			printf("spinning\n");
		fflush(stdout);
		for (;;)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Finalize();
	if (is(what, "after-finalize"))
		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (is(what, "exit-5") && rank == 2)
		return 5;
	if (is(what, "exits"))
		return rank == 0 ? 0 : 10 + rank;
	return 0;
}
