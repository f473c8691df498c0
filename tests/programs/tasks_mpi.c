// SPDX-License-Identifier: BSD-3-Clause
/* MPI calls inside OpenMP tasks. Each mode prints sums that do not depend on when anything happens:
 * the same with and without errors. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hale/task.h"

enum { SMALL = 40, BIG = 50000, ROUNDS = 6 };

static int rank, ranks;

static void mix(double *a, int n, double by)
{
	for (int i = 0; i < n; i++)
		a[i] = a[i] * 0.5 + by + 1e-3 * i;
}

static double sum_of(const double *a, int n)
{
	double s = 0;

	for (int i = 0; i < n; i++)
		s += a[i] * (1 + i % 7);
	return s;
}

static void say(const char *what, double mine)
{
	double all[64];

	MPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	for (int r = 0; rank == 0 && r < ranks; r++)
		printf("%s %d %.17g\n", what, r, all[r]);
}

#define RIGHT ((rank + 1) % ranks)
#define LEFT  ((rank + ranks - 1) % ranks)

/* Blocking: computing tasks and communicating ones take turns. */
static void ring(int n)
{
	double *a = calloc((size_t)n, sizeof(*a)), *b = calloc((size_t)n, sizeof(*b));

	mix(a, n, rank);
#pragma omp parallel
#pragma omp single
	for (int k = 0; k < ROUNDS; k++) {
#pragma omp task depend(inout : a [0:n]) depend(out : b [0:n]) firstprivate(k)
		{
			mix(a, n, k);
			if (rank % 2) {
				MPI_Recv(b, n, MPI_DOUBLE, LEFT, k, MPI_COMM_WORLD,
					 MPI_STATUS_IGNORE);
				MPI_Send(a, n, MPI_DOUBLE, RIGHT, k, MPI_COMM_WORLD);
			} else {
				MPI_Send(a, n, MPI_DOUBLE, RIGHT, k, MPI_COMM_WORLD);
				MPI_Recv(b, n, MPI_DOUBLE, LEFT, k, MPI_COMM_WORLD,
					 MPI_STATUS_IGNORE);
			}
			mix(a, n, b[n / 2]);
			MPI_Sendrecv(a, n, MPI_DOUBLE, LEFT, 100, b, n, MPI_DOUBLE, RIGHT, 100,
				     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Sendrecv_replace(b, n, MPI_DOUBLE, LEFT, 101, RIGHT, 101,
					     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
#pragma omp task depend(inout : a [0:n]) depend(in : b [0:n])
		mix(a, n, sum_of(b, n));
	}
	say("ring", sum_of(a, n));
	free(a);
	free(b);
}

/* Independent tasks, each with its own tag; requests of all kinds of ends. */
static void requests(int n)
{
	enum { TASKS = 5 };
	double *a = calloc((size_t)n * TASKS, sizeof(*a)),
	       *b = calloc((size_t)n * TASKS, sizeof(*b));

	mix(a, n * TASKS, rank);
#pragma omp parallel
#pragma omp single
	for (int k = 0; k < ROUNDS; k++)
		for (int t = 0; t < TASKS; t++) {
			double *x = a + (size_t)t * (size_t)n, *y = b + (size_t)t * (size_t)n;
#pragma omp task depend(inout : x [0:n]) depend(out : y [0:n]) firstprivate(t)
			{
				MPI_Request q[4];
				int half = n / 2, done = 0, which;

				MPI_Irecv(y, half, MPI_DOUBLE, LEFT, t, MPI_COMM_WORLD, &q[0]);
				MPI_Irecv(y + half, n - half, MPI_DOUBLE, LEFT, t, MPI_COMM_WORLD,
					  &q[1]);
				MPI_Isend(x, half, MPI_DOUBLE, RIGHT, t, MPI_COMM_WORLD, &q[2]);
				MPI_Issend(x + half, n - half, MPI_DOUBLE, RIGHT, t, MPI_COMM_WORLD,
					   &q[3]);
				if (t == 0)
					MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
				else if (t == 1)
					while (!done)
						MPI_Testall(4, q, &done, MPI_STATUSES_IGNORE);
				else if (t == 2)
					for (int i = 0; i < 4; i++)
						MPI_Waitany(4, q, &which, MPI_STATUS_IGNORE);
				else if (t == 3)
					for (int got, at[4]; done < 4; done += got)
						MPI_Waitsome(4, q, &got, at, MPI_STATUSES_IGNORE);
				else
					for (int i = 3; i >= 0; i--)
						MPI_Wait(&q[i], MPI_STATUS_IGNORE);
				mix(x, n, y[n - 1]);
			}
		}
	say("requests", sum_of(a, n * TASKS));
	free(a);
	free(b);
}

/* What is not known beforehand: the source, the tag, the size. */
static void unknown(int n)
{
	double *a = calloc((size_t)n, sizeof(*a)), *got = calloc((size_t)n * 64, sizeof(*got));

#pragma omp parallel
#pragma omp single
	for (int k = 0; k < ROUNDS; k++) {
#pragma omp task depend(inout : a [0:n]) depend(inout : got [0:n * 64])
		{
			MPI_Status st;
			int count;

			mix(a, n, rank);
			if (rank == 0) {
				for (int r = 1; r < ranks; r++) {
					MPI_Recv(got, n, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG,
						 MPI_COMM_WORLD, &st);
					MPI_Get_count(&st, MPI_DOUBLE, &count);
					/* in the order of ranks, whoever came first */
					memcpy(got + (size_t)st.MPI_SOURCE * (size_t)n, got,
					       (size_t)count * sizeof(*got));
				}
				for (int r = 1, tag; r < ranks; r++) {
					tag = 10 + r;
					MPI_Send(&tag, 1, MPI_INT, r, 500, MPI_COMM_WORLD);
				}
				for (int r = 1; r < ranks; r++) {
					MPI_Message m;

					MPI_Probe(MPI_ANY_SOURCE, 600, MPI_COMM_WORLD, &st);
					MPI_Get_count(&st, MPI_DOUBLE, &count);
					MPI_Recv(got, count, MPI_DOUBLE, st.MPI_SOURCE, 600,
						 MPI_COMM_WORLD, &st);
					got[(size_t)st.MPI_SOURCE * (size_t)n] +=
					    count + got[count - 1];
					MPI_Mprobe(MPI_ANY_SOURCE, 601, MPI_COMM_WORLD, &m, &st);
					MPI_Get_count(&st, MPI_DOUBLE, &count);
					MPI_Mrecv(got, count, MPI_DOUBLE, &m, &st);
					got[(size_t)st.MPI_SOURCE * (size_t)n + 1] +=
					    count + got[count - 1];
				}
				for (int r = 1; r < ranks; r++)
					mix(a, n, got[(size_t)r * (size_t)n]);
				for (int r = 1; r < ranks; r++)
					MPI_Send(a, 1, MPI_DOUBLE, r, 700, MPI_COMM_WORLD);
			} else {
				int back, found = 0;

				MPI_Send(a, n - rank, MPI_DOUBLE, 0, 10 + rank, MPI_COMM_WORLD);
				while (!found)
					MPI_Iprobe(0, 500, MPI_COMM_WORLD, &found, &st);
				MPI_Recv(&back, 1, MPI_INT, 0, 500, MPI_COMM_WORLD, &st);
				MPI_Send(a, 3 + rank, MPI_DOUBLE, 0, 600, MPI_COMM_WORLD);
				MPI_Send(a, 5 + rank, MPI_DOUBLE, 0, 601, MPI_COMM_WORLD);
				MPI_Recv(a, 1, MPI_DOUBLE, 0, 700, MPI_COMM_WORLD, &st);
				mix(a, n, back);
			}
		}
	}
	say("unknown", sum_of(a, n));
	free(a);
	free(got);
}

/* In a communicator that the task makes and frees, too. */
static void collectives(int n)
{
	double *a = calloc((size_t)n, sizeof(*a)), *b = calloc((size_t)n * 64, sizeof(*b));

	mix(a, n, rank);
#pragma omp parallel
#pragma omp single
	for (int k = 0; k < ROUNDS; k++) {
#pragma omp task depend(inout : a [0:n]) depend(inout : b [0:n * 64]) firstprivate(k)
		{
			MPI_Request q[3];
			MPI_Comm mine;
			MPI_Datatype every;
			int me;
			double s = sum_of(a, n), t = 0;

			MPI_Allreduce(&s, &t, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
			mix(a, n, t * 1e-6);
			MPI_Allgather(a, n, MPI_DOUBLE, b, n, MPI_DOUBLE, MPI_COMM_WORLD);
			MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &mine);
			MPI_Comm_rank(mine, &me);
			MPI_Bcast(a, n, MPI_DOUBLE, 0, mine);
			MPI_Iallreduce(MPI_IN_PLACE, b, n, MPI_DOUBLE, MPI_MAX, mine, &q[0]);
			MPI_Ibcast(b + n, n, MPI_DOUBLE, k % ranks, MPI_COMM_WORLD, &q[1]);
			MPI_Ibarrier(mine, &q[2]);
			MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
			MPI_Type_vector(n / 4, 1, 2, MPI_DOUBLE, &every);
			MPI_Type_commit(&every);
			MPI_Sendrecv(a, 1, every, RIGHT, 7, b + 2 * n, 1, every, LEFT, 7,
				     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Type_free(&every);
			MPI_Comm_free(&mine);
			MPI_Exscan(&s, &t, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
			mix(a, n, 1e-6 * (t + me + b[n / 2] + b[n + n / 3] + b[2 * n + 2]));
			MPI_Barrier(MPI_COMM_WORLD);
		}
	}
	say("collectives", sum_of(a, n));
	free(a);
	free(b);
}

/* A request that one task begins and the next one ends; a third one goes on with the data. */
static void crossing(int n)
{
	double *a = calloc((size_t)n, sizeof(*a)), *b = calloc((size_t)n, sizeof(*b));
	static MPI_Request q[2];

	mix(a, n, rank);
#pragma omp parallel
#pragma omp single
	for (int k = 0; k < ROUNDS; k++) {
#pragma omp task depend(in : a [0:n]) depend(inout : b [0:n]) depend(out : q)
		{
			MPI_Irecv(b, n, MPI_DOUBLE, LEFT, 3, MPI_COMM_WORLD, &q[0]);
			MPI_Isend(a, n, MPI_DOUBLE, RIGHT, 3, MPI_COMM_WORLD, &q[1]);
		}
#pragma omp task depend(inout : a [0:n]) depend(inout : b [0:n]) depend(inout : q)
		{
			int which;

			MPI_Waitany(2, q, &which, MPI_STATUS_IGNORE);
			MPI_Wait(&q[1 - which], MPI_STATUS_IGNORE);
			mix(a, n, b[n / 3]);
		}
	}
	say("crossing", sum_of(a, n));
	free(a);
	free(b);
}

/* Begun outside of tasks, completed in one. */
static void outside(int n)
{
	double *a = calloc((size_t)n, sizeof(*a)), *b = calloc((size_t)n, sizeof(*b));
	static MPI_Request q[2];

	mix(a, n, rank);
	for (int k = 0; k < 3; k++) {
		MPI_Irecv(b, n, MPI_DOUBLE, LEFT, 4, MPI_COMM_WORLD, &q[0]);
		MPI_Isend(a, n, MPI_DOUBLE, RIGHT, 4, MPI_COMM_WORLD, &q[1]);
#pragma omp parallel
#pragma omp single
#pragma omp task depend(inout : a [0:n]) depend(inout : b [0:n]) depend(inout : q)
		{
			MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
			mix(a, n, b[n / 3]);
		}
	}
	say("outside", sum_of(a, n));
	free(a);
	free(b);
}

/* Calls that can't be repeated. */
static void window(void)
{
	static double here[4], mine[4];
	MPI_Win w;

#pragma omp parallel
#pragma omp single
#pragma omp task depend(inout : mine) shared(w)
	{
		mine[0] = rank + 1;
		MPI_Win_create(here, sizeof(here), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
		MPI_Win_fence(0, w);
		MPI_Put(mine, 1, MPI_DOUBLE, RIGHT, 0, 1, MPI_DOUBLE, w);
		MPI_Win_fence(0, w);
	}
	say("window", here[0]);
	MPI_Win_free(&w);
}

/* A page that a task has received into is lost when the task looks at it no more: only the copy at
 * its end (inputs:keep) meets it, and the task is executed again. Needs two threads. */
static _Alignas(4096) double arrived[512];

static void await(int *counter, int value)
{
	while (__atomic_load_n(counter, __ATOMIC_SEQ_CST) < value)
		sched_yield();
}

static void late(void)
{
	static double sent, nothing;
	double sum = 0;

#pragma omp parallel
#pragma omp single
	for (int k = 0; k < 40; k++) {
		static int here;
		here = 0;
#pragma omp taskgroup
		{
#pragma omp task depend(inout : arrived) firstprivate(k)
			{
				arrived[k] =
				    -1; /* what is lost before is met here, not inside MPI */
				sent = rank + k * 0.5;
				MPI_Sendrecv(&sent, 1, MPI_DOUBLE, RIGHT, 5, &arrived[k], 1,
					     MPI_DOUBLE, LEFT, 5, MPI_COMM_WORLD,
					     MPI_STATUS_IGNORE);
				__atomic_add_fetch(&here, 1, __ATOMIC_SEQ_CST);
				await(&here, 2);
			}
			await(&here, 1);
			/* as it begins, the page may be lost */
#pragma omp task depend(inout : nothing)
			__atomic_add_fetch(&here, 1, __ATOMIC_SEQ_CST);
		}
		sum = sum * 0.75 + arrived[k];
	}
	say("late", sum);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "all";
	int all = strcmp(mode, "all") == 0, level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int n = SMALL; n <= BIG; n = n == SMALL ? BIG : BIG + 1) {
		if (all || strcmp(mode, "ring") == 0)
			ring(n);
		if (all || strcmp(mode, "requests") == 0)
			requests(n);
		if (all || strcmp(mode, "unknown") == 0)
			unknown(n);
		if (all || strcmp(mode, "collectives") == 0)
			collectives(n);
		if (all || strcmp(mode, "crossing") == 0)
			crossing(n);
		if (all || strcmp(mode, "outside") == 0)
			outside(n);
	}
	if (strcmp(mode, "late") == 0)
		late();
	if (strcmp(mode, "window") == 0)
		window();
	MPI_Finalize();
	return 0;
}
