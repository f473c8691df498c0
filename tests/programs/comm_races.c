/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators made by many threads at once, in different orders in different processes, and by
 * nonblocking duplication with other calls in between. Checks itself: whatever is made must carry
 * its own messages only. Prints "ok" from rank 0. Run it with 2 to 8 ranks; an argument
 * says how often. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 25, PENDING = 6 };

static int me, all;
static MPI_Comm base[THREADS];

static void check(int ok, const char *what)
{
	if (ok)
		return;
	printf("rank %d: %s\n", me, what);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

/* Everybody must see the same value from everybody, and messages must stay inside. */
static void use(MPI_Comm c, int value)
{
	int rank, size, got, low, high;
	MPI_Comm_rank(c, &rank);
	MPI_Comm_size(c, &size);
	MPI_Allreduce(&value, &low, 1, MPI_INT, MPI_MIN, c);
	MPI_Allreduce(&value, &high, 1, MPI_INT, MPI_MAX, c);
	check(low == value && high == value, "a collective mixed two communicators");
	MPI_Sendrecv(&value, 1, MPI_INT, (rank + 1) % size, 1, &got, 1, MPI_INT,
		     (rank + size - 1) % size, 1, c, MPI_STATUS_IGNORE);
	check(got == value, "a message came from another communicator");
}

static void *make_and_use(void *arg)
{
	int t = (int)(long)arg;
	MPI_Comm kept[ROUNDS];
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm split;
		MPI_Request r;
		int value = t * 1000 + i;
		if (i % 3 == 0)
			MPI_Comm_dup(base[t], &kept[i]);
		else if (i % 3 == 1)
			MPI_Comm_split(base[t], 0, me, &kept[i]);
		else {
			MPI_Comm_idup(base[t], &kept[i], &r);
			MPI_Wait(&r, MPI_STATUS_IGNORE);
		}
		MPI_Comm_split(kept[i], me % 2, me, &split);
		use(kept[i], value);
		use(split, value * 10 + me % 2);
		MPI_Comm_free(&split);
		if (i % 4 == 0)
			MPI_Comm_free(&kept[i]);
	}
	for (int i = 0; i < ROUNDS; i++)
		if (i % 4)
			MPI_Comm_free(&kept[i]);
	return NULL;
}

static void threads(void)
{
	pthread_t thread[THREADS];
	for (long t = 0; t < THREADS; t++)
		pthread_create(&thread[t], NULL, make_and_use, (void *)t);
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
}

static void *dup_one(void *arg)
{
	MPI_Comm c;
	int t = (int)(long)arg;
	MPI_Comm_dup(base[t], &c);
	use(c, t);
	MPI_Comm_free(&c);
	return NULL;
}

/* Even ranks do two duplications in two threads, odd ranks one after the other: an agreement that
 * holds on to something while it waits for a rank that is not there yet would never end. */
static void two_orders(void)
{
	for (int i = 0; i < 50; i++) {
		pthread_t thread;
		if (me % 2 == 0) {
			pthread_create(&thread, NULL, dup_one, (void *)(long)(i % 2));
			dup_one((void *)(long)(1 - i % 2));
			pthread_join(thread, NULL);
		} else {
			dup_one((void *)0);
			dup_one((void *)1);
		}
	}
}

static void *group_of_some(void *arg)
{
	int tag = (int)(long)arg;
	MPI_Group world, some;
	MPI_Comm c;
	int range[1][3] = {{tag % 2, all - 1, 2}};
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_range_incl(world, 1, range, &some);
	int rank;
	MPI_Group_rank(some, &rank);
	for (int i = 0; i < 20 && rank != MPI_UNDEFINED; i++) {
		MPI_Comm_create_group(MPI_COMM_WORLD, some, tag, &c);
		use(c, tag * 100 + i);
		MPI_Comm_free(&c);
	}
	MPI_Group_free(&some);
	MPI_Group_free(&world);
	return NULL;
}

static void groups_at_once(void)
{
	pthread_t thread[THREADS];
	for (long t = 0; t < THREADS; t++)
		pthread_create(&thread[t], NULL, group_of_some, (void *)t);
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
}

static void idups(void)
{
	MPI_Comm c[PENDING], d, self;
	MPI_Request r[PENDING];
	for (int round = 0; round < 20; round++) {
		int sum, one = 1;
		for (int i = 0; i < PENDING; i++) {
			MPI_Comm_idup(base[i % 2], &c[i], &r[i]);
			if (i == 1)
				MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, base[0]);
			if (i == 2)
				MPI_Comm_dup(base[0], &d);
			if (i == 3)
				MPI_Comm_dup(MPI_COMM_SELF, &self);
		}
		check(sum == all, "a collective between two idups is wrong");
		/* not in order */
		for (int i = PENDING - 1; i >= 0; i--)
			MPI_Wait(&r[i], MPI_STATUS_IGNORE);
		for (int i = 0; i < PENDING; i++)
			use(c[i], round * 10 + i);
		use(d, round);
		use(self, me);
		for (int i = 0; i < PENDING; i++)
			MPI_Comm_free(&c[i]);
		MPI_Comm_free(&d);
		MPI_Comm_free(&self);
	}
}

/* Numbers are given back: far more communicators in a row than can be at once. */
static void reuse(void)
{
	for (int i = 0; i < 6000; i++) {
		MPI_Comm c;
		MPI_Comm_dup(MPI_COMM_WORLD, &c);
		MPI_Comm_free(&c);
	}
}

static void to_the_limit(void)
{
	static MPI_Comm c[8192];
	int n = 0, rc, class = MPI_SUCCESS;
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	do
		rc = MPI_Comm_dup(MPI_COMM_SELF, &c[n]);
	while (rc == MPI_SUCCESS && ++n < 8192);
	if (rc != MPI_SUCCESS)
		MPI_Error_class(rc, &class);
	check(n > 1000, "not even a thousand communicators at once");
	check(n == 8192 || class != MPI_SUCCESS, "no error at the limit");
	while (n > 0)
		MPI_Comm_free(&c[--n]);
	MPI_Comm_dup(MPI_COMM_SELF, &c[0]);
	use(c[0], me);
	MPI_Comm_free(&c[0]);
}

int main(int argc, char **argv)
{
	int provided;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &all);
	check(provided == MPI_THREAD_MULTIPLE, "no MPI_THREAD_MULTIPLE");
	for (int t = 0; t < THREADS; t++)
		MPI_Comm_dup(MPI_COMM_WORLD, &base[t]);
	for (int times = argc > 1 ? atoi(argv[1]) : 1; times > 0; times--) {
		idups();
		groups_at_once();
		two_orders();
		threads();
		reuse();
	}
	to_the_limit();
	for (int t = 0; t < THREADS; t++)
		MPI_Comm_free(&base[t]);
	MPI_Barrier(MPI_COMM_WORLD);
	if (me == 0)
		printf("ok\n");
	MPI_Finalize();
	return 0;
}
