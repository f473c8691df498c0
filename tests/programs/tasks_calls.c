// SPDX-License-Identifier: BSD-3-Clause
/* One-sided calls and persistent requests inside OpenMP tasks: tasks_calls MODE. Each mode prints
 * sums of the ranks' data and of their windows, the same with and without errors. Partitioned
 * messages are there if the MPI has them. */
#include <mpi.h>
#ifdef OMPI_MPI_H
#include <mpi-ext.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 40, BIG = 50000, ROUNDS = 6, PARTS = 4 };

static int rank, ranks;

#define RIGHT ((rank + 1) % ranks)
#define LEFT  ((rank + ranks - 1) % ranks)

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

static double *window_make(int n, int shared, MPI_Win *w)
{
	MPI_Aint bytes = (MPI_Aint)n * (MPI_Aint)sizeof(double);
	double *here;

	if (shared) {
		MPI_Win_allocate(bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &here, w);
	} else {
		here = malloc((size_t)bytes);
		MPI_Win_create(here, bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, w);
	}
	for (int i = 0; i < n; i++)
		here[i] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	return here;
}

static void window_end(double *here, int shared, MPI_Win *w)
{
	MPI_Win_free(w);
	if (!shared)
		free(here);
}

/* Fences inside the tasks that put, add and get; others read what has come. */
static void fences(int n, int shared)
{
	MPI_Win w;
	double *a = calloc((size_t)n, sizeof(*a)), *got = calloc((size_t)n, sizeof(*got));
	double *here = window_make(2 * n, shared, &w);

	mix(a, n, rank);
#pragma omp parallel
#pragma omp single
	for (int k = 0; k < ROUNDS; k++) {
#pragma omp task depend(inout : a [0:n], got [0:n]) firstprivate(k)
		{
			MPI_Win_fence(0, w);
			mix(a, n, k);
			MPI_Put(a, n, MPI_DOUBLE, RIGHT, 0, n, MPI_DOUBLE, w);
			MPI_Win_fence(0, w);
			MPI_Accumulate(got, n, MPI_DOUBLE, LEFT, n, n, MPI_DOUBLE, MPI_SUM, w);
			MPI_Win_fence(0, w);
			MPI_Get(got, n, MPI_DOUBLE, RIGHT, n, n, MPI_DOUBLE, w);
			MPI_Win_fence(0, w);
			mix(a, n, got[n / 2]);
		}
#pragma omp task depend(inout : a [0:n]) depend(in : here [0:2 * n])
		mix(a, n, 1e-3 * sum_of(here, 2 * n));
	}
	say("fences", sum_of(a, n) + sum_of(got, n));
	say("window", sum_of(here, 2 * n));
	window_end(here, shared, &w);
	free(a);
	free(got);
}

/* Locks, flushes, requests, and every call that fetches. Slot r of rank 0 counts what rank r has
 * done, slot 63 what all have: whoever adds twice shows. */
static void locks(int n, int shared)
{
	MPI_Win w;
	double *a = calloc((size_t)n, sizeof(*a)), *got = calloc((size_t)n, sizeof(*got));
	double *here = window_make(64 + 2 * n, shared, &w);

	mix(a, n, rank);
#pragma omp parallel
#pragma omp single
	for (int k = 0; k < ROUNDS; k++) {
#pragma omp task depend(inout : a [0:n], got [0:n]) firstprivate(k)
		{
			double one = 1, was, all;
			long swapped;
			MPI_Request q[2];

			MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w);
			MPI_Fetch_and_op(&one, &was, MPI_DOUBLE, 0, rank, MPI_SUM, w);
			MPI_Win_flush(0, w);
			MPI_Fetch_and_op(&one, &all, MPI_DOUBLE, 0, 63, MPI_SUM, w);
			MPI_Accumulate(&one, 1, MPI_DOUBLE, 0, 63, 1, MPI_DOUBLE, MPI_SUM, w);
			MPI_Win_unlock(0, w);
			mix(a, n, was);
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, RIGHT, 0, w);
			MPI_Rput(a, n, MPI_DOUBLE, RIGHT, 64, n, MPI_DOUBLE, w, &q[0]);
			MPI_Wait(&q[0], MPI_STATUS_IGNORE);
			MPI_Get_accumulate(a, n, MPI_DOUBLE, got, n, MPI_DOUBLE, RIGHT, 64 + n, n,
					   MPI_DOUBLE, MPI_SUM, w);
			MPI_Win_flush_local(RIGHT, w);
			mix(a, n, got[n / 3]);
			MPI_Win_unlock(RIGHT, w);
			MPI_Win_lock_all(0, w);
			MPI_Rget(got, n, MPI_DOUBLE, RIGHT, 64 + n, n, MPI_DOUBLE, w, &q[0]);
			MPI_Raccumulate(&one, 1, MPI_DOUBLE, 0, 32 + rank, 1, MPI_DOUBLE, MPI_SUM,
					w, &q[1]);
			MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
			{
				long mine = 100 * (rank + 1) + k, before = k ? mine - 1 : 0;

				/* doubles and longs are as long */
				MPI_Compare_and_swap(&mine, &before, &swapped, MPI_LONG, 0,
						     16 + rank, w);
			}
			MPI_Win_flush_all(w);
			MPI_Win_unlock_all(w);
			MPI_Win_sync(w);
			mix(a, n, got[n - 1] + (double)swapped);
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	say("locks", sum_of(a, n) + sum_of(got, n));
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, w);
	if (rank == 0)
		for (int r = 0; r < ranks; r++)
			printf("slots %g %ld %g %g\n", here[r], ((long *)here)[16 + r],
			       here[32 + r], here[63]);
	say("window", sum_of(here + 64, 2 * n));
	MPI_Win_unlock(rank, w);
	window_end(here, shared, &w);
	free(a);
	free(got);
}

/* Post, start, complete, wait around a ring; and rows of the own window that only this process
 * writes, between tasks, and that a task sends to the neighbour. */
static void posts(int n, int shared)
{
	MPI_Win w;
	MPI_Group all, left, right;
	double *a = calloc((size_t)n, sizeof(*a));
	double *here = window_make(2 * n, shared, &w);
	int l = LEFT, r = RIGHT;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &l, &left);
	MPI_Group_incl(all, 1, &r, &right);
	mix(a, n, rank);
	for (int k = 0; k < ROUNDS; k++) {
		mix(here, n, k + rank);
#pragma omp parallel
#pragma omp single
		{
#pragma omp task depend(inout : a [0:n]) depend(in : here [0:n]) firstprivate(k)
			{
				int over = 0;

				MPI_Win_post(left, 0, w);
				MPI_Win_start(right, 0, w);
				MPI_Put(here, n, MPI_DOUBLE, RIGHT, n, n, MPI_DOUBLE, w);
				MPI_Win_complete(w);
				if (k % 2)
					MPI_Win_wait(w);
				while (!over && k % 2 == 0)
					MPI_Win_test(w, &over);
				mix(a, n, here[n / 2]);
			}
#pragma omp task depend(inout : a [0:n]) depend(in : here [n:n])
			mix(a, n, 1e-3 * sum_of(here + n, n));
		}
	}
	say("posts", sum_of(a, n));
	say("window", sum_of(here, 2 * n));
	MPI_Group_free(&all);
	MPI_Group_free(&left);
	MPI_Group_free(&right);
	window_end(here, shared, &w);
	free(a);
}

/* A task that reads its own window and then lets another rank write there. */
static void reads(void)
{
	MPI_Win w;
	double *here = window_make(1, 1, &w), sum = 0;

	here[0] = 3;
	MPI_Barrier(MPI_COMM_WORLD);
#pragma omp parallel
#pragma omp single
	{
#pragma omp task depend(in : here [0:1]) depend(inout : sum)
		{
			double seven = 7;

			sum += here[0];
			if (rank == 0) {
				MPI_Send(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD);
				MPI_Recv(NULL, 0, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			} else if (rank == 1) {
				MPI_Recv(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
				MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w);
				MPI_Put(&seven, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, w);
				MPI_Win_unlock(0, w);
				MPI_Send(NULL, 0, MPI_INT, 0, 2, MPI_COMM_WORLD);
			}
		}
	}
	say("reads", sum);
	window_end(here, 1, &w);
}

/* A task whose data others write to. */
static void writes(void)
{
	MPI_Win w;
	double *here = window_make(2, 1, &w);

#pragma omp parallel
#pragma omp single
#pragma omp task depend(inout : here [0:2])
	here[0] += 1;
	MPI_Barrier(MPI_COMM_WORLD);
	say("writes", here[0]);
	window_end(here, 1, &w);
}

/* Requests that are made outside of tasks, and started and completed in one, in two, or half
 * outside; and those that a task makes and frees. */
/* What was begun outside of tasks, and the same requests again. */
static void persistent_anew(double *a, double *b, int n, MPI_Request q[2], MPI_Request o[2])
{
	MPI_Status st[2];
	int which[2], got, done = 0;

	for (; done < 2; done += got)
		MPI_Waitsome(2, o, &got, which, st);
	mix(a, n, b[n / 2]);
	MPI_Startall(2, o);
	MPI_Waitany(2, o, &got, st);
	MPI_Waitany(2, o, &got, st);
	mix(a, n, b[n / 3]);
	for (int i = 0; i < 3; i++) {
		MPI_Start(&q[1]);
		MPI_Start(&q[0]);
		if (i == 1)
			for (done = 0; !done;)
				MPI_Testall(2, q, &done, st);
		else
			MPI_Waitall(2, q, st);
		mix(a, n, b[n - 1] + i);
	}
}

/* Made and freed by the task. */
static void persistent_own(double *a, double *b, int n)
{
	MPI_Request mine[2];

	MPI_Send_init(a, n, MPI_DOUBLE, RIGHT, 3, MPI_COMM_WORLD, &mine[0]);
	MPI_Recv_init(b, n, MPI_DOUBLE, LEFT, 3, MPI_COMM_WORLD, &mine[1]);
	for (int i = 0; i < 2; i++) {
		MPI_Startall(2, mine);
		MPI_Waitall(2, mine, MPI_STATUSES_IGNORE);
		mix(a, n, b[n / 5]);
	}
	MPI_Request_free(&mine[0]);
	MPI_Request_free(&mine[1]);
}

static void persistent(int n)
{
	double *a = calloc((size_t)n, sizeof(*a)), *b = calloc((size_t)n, sizeof(*b));
	MPI_Request q[2], o[2], sum = MPI_REQUEST_NULL;
	double in = 0, out = 0;

	mix(a, n, rank);
	MPI_Send_init(a, n, MPI_DOUBLE, RIGHT, 1, MPI_COMM_WORLD, &q[0]);
	MPI_Recv_init(b, n, MPI_DOUBLE, LEFT, 1, MPI_COMM_WORLD, &q[1]);
	MPI_Ssend_init(a, n, MPI_DOUBLE, LEFT, 2, MPI_COMM_WORLD, &o[0]);
	MPI_Recv_init(b, n, MPI_DOUBLE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &o[1]);
#ifdef OMPI_MPI_H
	MPIX_Allreduce_init(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &sum);
#endif
	for (int k = 0; k < ROUNDS; k++) {
		MPI_Startall(2, o);
#pragma omp parallel
#pragma omp single
		{
#pragma omp task depend(inout : a [0:n], b [0:n]) firstprivate(k)
			persistent_anew(a, b, n, q, o);
			/* begun by one, ended by another */
#pragma omp task depend(in : a [0:n]) depend(inout : b [0:n])
			MPI_Startall(2, q);
#pragma omp task depend(inout : a [0:n], b [0:n], in, out)
			{
				int which[2], got, done = 0;

				/* the send of a short message has left already */
				for (; done < 2; done += got) {
					MPI_Waitsome(2, q, &got, which, MPI_STATUSES_IGNORE);
					if (got < 1)
						abort();
				}
				mix(a, n, b[n / 4]);
				if (sum != MPI_REQUEST_NULL) {
					in = a[0];
					MPI_Start(&sum);
					MPI_Wait(&sum, MPI_STATUS_IGNORE);
					mix(a, n, out * 1e-3);
				}
			}
#pragma omp task depend(inout : a [0:n], b [0:n])
			persistent_own(a, b, n);
			/* begun by a task, ended outside */
#pragma omp task depend(in : a [0:n]) depend(inout : b [0:n])
			MPI_Startall(2, q);
		}
		MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
		mix(a, n, b[n / 2]);
	}
	for (int i = 0; i < 2; i++) {
		MPI_Request_free(&q[i]);
		MPI_Request_free(&o[i]);
	}
	if (sum != MPI_REQUEST_NULL)
		MPI_Request_free(&sum);
	say("persistent", sum_of(a, n));
	free(a);
	free(b);
}

/* Each task makes its own partition ready; the receiver's tasks wait for theirs. */
static void partitioned(int n)
{
#ifdef MPICH_VERSION
	double *a = calloc((size_t)n * PARTS, sizeof(*a)),
	       *b = calloc((size_t)n * PARTS, sizeof(*b));
	double *c = calloc((size_t)n * PARTS, sizeof(*c));
	MPI_Request q[2];

	mix(a, n * PARTS, rank);
	MPI_Psend_init(a, PARTS, n, MPI_DOUBLE, RIGHT, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &q[0]);
	MPI_Precv_init(b, PARTS, n, MPI_DOUBLE, LEFT, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &q[1]);
	for (int k = 0; k < ROUNDS; k++) {
		MPI_Startall(2, q);
#pragma omp parallel
#pragma omp single
		{
			for (int p = 0; p < PARTS; p++) {
				double *x = a + (size_t)p * (size_t)n;
#pragma omp task depend(inout : x [0:n]) firstprivate(p, k)
				{
					mix(x, n, p + k);
					MPI_Pready(p, q[0]);
				}
			}
#pragma omp taskwait
			for (int p = 0; p < PARTS; p++) {
				double *y = b + (size_t)p * (size_t)n,
				       *z = c + (size_t)p * (size_t)n;
#pragma omp task depend(in : y [0:n]) depend(inout : z [0:n]) firstprivate(p)
				{
					int there = 0;

					while (!there)
						MPI_Parrived(q[1], p, &there);
					mix(z, n, y[n / 2]);
				}
			}
		}
		MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	}
	MPI_Request_free(&q[0]);
	MPI_Request_free(&q[1]);
	say("partitioned", sum_of(a, n * PARTS) + sum_of(b, n * PARTS) + sum_of(c, n * PARTS));
	free(a);
	free(b);
	free(c);
#endif
}

/* Which of several requests comes first is kept, too, if some are complete from the start. */
static void first(void)
{
	double a = rank, b = 0, order = 0;

#pragma omp parallel
#pragma omp single
	for (int k = 0; k < 50; k++) {
#pragma omp task depend(inout : a, b, order) firstprivate(k)
		{
			MPI_Request q[3];
			int which;

			MPI_Irecv(&b, 1, MPI_DOUBLE, LEFT, 9, MPI_COMM_WORLD, &q[0]);
			MPI_Irecv(NULL, 0, MPI_DOUBLE, MPI_PROC_NULL, 9, MPI_COMM_WORLD, &q[1]);
			MPI_Isend(&a, 1, MPI_DOUBLE, RIGHT, 9, MPI_COMM_WORLD, &q[2]);
			for (int i = 0; i < 3; i++) {
				MPI_Waitany(3, q, &which, MPI_STATUS_IGNORE);
				order = order * 1.5 + which;
				/* what it depends on goes to the neighbour: all must agree */
				MPI_Sendrecv(&order, 1, MPI_DOUBLE, RIGHT, 10, &b, 1, MPI_DOUBLE,
					     LEFT, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			}
			/* what was sent is what is had */
			MPI_Sendrecv(&order, 1, MPI_DOUBLE, RIGHT, 11, &b, 1, MPI_DOUBLE, LEFT, 11,
				     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
#pragma omp taskwait
		double left = 0;
		MPI_Sendrecv(&order, 1, MPI_DOUBLE, RIGHT, 12, &left, 1, MPI_DOUBLE, LEFT, 12,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (left != b)
			printf("first: in round %d rank %d heard %.17g of %.17g\n", k, rank, b,
			       left);
	}
	say("first", 0);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int shared = argc > 2 && strcmp(argv[2], "shared") == 0, level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int n = SMALL; n <= BIG; n = n == SMALL ? BIG : BIG + 1) {
		if (strcmp(mode, "fences") == 0)
			fences(n, shared);
		if (strcmp(mode, "locks") == 0)
			locks(n, shared);
		if (strcmp(mode, "posts") == 0)
			posts(n, shared);
		if (strcmp(mode, "persistent") == 0)
			persistent(n);
		if (strcmp(mode, "partitioned") == 0)
			partitioned(n);
	}
	if (strcmp(mode, "reads") == 0)
		reads();
	if (strcmp(mode, "writes") == 0)
		writes();
	if (strcmp(mode, "first") == 0)
		first();
	MPI_Finalize();
	return 0;
}
