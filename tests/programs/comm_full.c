/* SPDX-License-Identifier: BSD-3-Clause */
/* More communicators than there are numbers, made in one of the ways (the argument) and each one
 * used, under MPI_ERRORS_RETURN: what can't be made is an error, the handle is good for nothing but
 * to be freed, and afterwards everything works again. Two ranks at least. Rank 0 says what it
 * found; a wrong answer ends the job. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 6000 };

static int me, n;
static MPI_Comm made[MOST], half, inter;
static MPI_Group world;

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "rank %d: %s\n", me, what);
	exit(3);
}

static int make(int way, MPI_Comm *out)
{
	MPI_Request r;
	int rc, dims[1] = {n}, open[1] = {0};

	*out = MPI_COMM_NULL;
	switch (way) {
	case 0:
		return MPI_Comm_dup(MPI_COMM_WORLD, out);
	case 1:
		return MPI_Comm_split(MPI_COMM_WORLD, 0, me, out);
	case 2:
		return MPI_Comm_create(MPI_COMM_WORLD, world, out);
	case 3:
		rc = MPI_Comm_idup(MPI_COMM_WORLD, out, &r);
		return rc ? rc : MPI_Wait(&r, MPI_STATUS_IGNORE);
	case 4:
		return MPI_Comm_create_group(MPI_COMM_WORLD, world, 3, out);
	case 5:
		return MPI_Cart_create(MPI_COMM_WORLD, 1, dims, open, 0, out);
	case 6:
		return MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - me % 2, 5, out);
	case 7:
		return MPI_Intercomm_merge(inter, me % 2, out);
	case 8:
		rc = MPI_Comm_idup(inter, out, &r);
		return rc ? rc : MPI_Wait(&r, MPI_STATUS_IGNORE);
	default:
		return MPI_Comm_dup(inter, out);
	}
}

/* What a program does that does not look at what it got. */
static void misuse(MPI_Comm c)
{
	int one = 1, sum, size, class;
	MPI_Comm d;

	must(MPI_Barrier(c) != MPI_SUCCESS, "a barrier on what was not made");
	must(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c) != MPI_SUCCESS, "a reduction");
	must(MPI_Send(&one, 0, MPI_INT, 0, 0, c) != MPI_SUCCESS, "a message");
	must(MPI_Comm_dup(c, &d) != MPI_SUCCESS, "a copy of what was not made");
	MPI_Error_class(MPI_Comm_size(c, &size), &class);
	must(class == MPI_ERR_COMM, "the size of what was not made");
}

static int fill(int way)
{
	int count = 0, rc = MPI_SUCCESS, class, one = 1, sum;

	while (count < MOST && (rc = make(way, &made[count])) == MPI_SUCCESS) {
		sum = 0;
		must(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made[count]) == MPI_SUCCESS &&
			 sum > 0,
		     "a reduction on a new communicator");
		count++;
	}
	must(rc != MPI_SUCCESS, "there are too many numbers for this test");
	MPI_Error_class(rc, &class);
	must(class == MPI_ERR_OTHER, "the class of the error");
	for (int i = 0; i < 3; i++) {
		misuse(made[count]);
		if (made[count] != MPI_COMM_NULL)
			must(MPI_Comm_free(&made[count]) == MPI_SUCCESS, "it can't be freed");
		must(made[count] == MPI_COMM_NULL, "a handle that is still there");
		must(make(way, &made[count]) != MPI_SUCCESS, "a number came from nowhere");
	}
	if (made[count] != MPI_COMM_NULL)
		MPI_Comm_free(&made[count]);
	for (int i = 0; i < count; i++)
		MPI_Comm_free(&made[i]);
	return count;
}

int main(int argc, char **argv)
{
	int one = 1, sum, count;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - me % 2, 5, &inter);
	for (int i = 1; i < argc; i++) {
		count = fill(atoi(argv[i]));
		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		must(sum == n, "the sum over all");
		if (me == 0)
			printf("way %s: %s\n", argv[i], count > 2000 ? "thousands" : "few");
	}
	MPI_Group_free(&world);
	MPI_Finalize();
	return 0;
}
