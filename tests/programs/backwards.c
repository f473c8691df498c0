// SPDX-License-Identifier: BSD-3-Clause
/* backwards [MANY]: reductions of a type whose elements lie one before the other, as a
 * negative extent says. Prints how much was wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 3 };

static int rank, ranks;
static ptrdiff_t step; /* from one element to the next */

static void add(void *in, void *inout, int *n, MPI_Datatype *t)
{
	char *x = in, *y = inout;

	(void)t;
	for (int i = 0; i < *n; i++, x += step, y += step)
		for (int k = 0; k < WIDTH; k += 2)
			((double *)y)[k] += ((double *)x)[k];
}

static double wanted(int how, double value)
{
	int to = how == 2 ? rank + 1 : how == 3 ? rank : ranks;

	return value * to * (to + 1) / 2;
}

static int one_wrong(MPI_Op op, MPI_Datatype t, int count, int how)
{
	size_t doubles = (size_t)count * 8 + 64, last = doubles - 8;
	double *in = malloc(doubles * 8), *out = malloc(doubles * 8), *a = in + last, *b = out + last;
	int wrong = 0, got = count;
	MPI_Request r;

	for (size_t i = 0; i < doubles; i++) {
		in[i] = (rank + 1) * (double)(i + 1);
		out[i] = -1;
	}
	if (how == 0)
		MPI_Allreduce(a, b, count, t, op, MPI_COMM_WORLD);
	else if (how == 1)
		MPI_Reduce(a, b, count, t, op, ranks - 1, MPI_COMM_WORLD);
	else if (how == 2)
		MPI_Scan(a, b, count, t, op, MPI_COMM_WORLD);
	else if (how == 3)
		MPI_Exscan(a, b, count, t, op, MPI_COMM_WORLD);
	else if (how == 4)
		MPI_Iallreduce(a, b, count, t, op, MPI_COMM_WORLD, &r);
	else
		MPI_Reduce_scatter_block(a, b, got = count / ranks, t, op, MPI_COMM_WORLD);
	if (how == 4)
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	if ((how == 1 && rank != ranks - 1) || (how == 3 && rank == 0))
		got = 0;
	int first = how == 5 ? rank * got : 0;
	for (int i = 0; i < got; i++) {
		ptrdiff_t to = i * step / 8, from = (first + i) * step / 8;

		for (ptrdiff_t k = 0; k < WIDTH; k += 2)
			wrong += b[to + k] != wanted(how, (double)((ptrdiff_t)last + from + k + 1));
		wrong += b[to + 1] != -1;
	}
	wrong += b[WIDTH] != -1;
	free(in);
	free(out);
	return wrong;
}

int main(int argc, char **argv)
{
	MPI_Datatype one, t;
	MPI_Op op;
	int wrong = 0, counts[] = {1, 4, 100, argc > 1 ? atoi(argv[1]) : 1000};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Op_create(add, 1, &op);
	MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &one);
	for (step = -64; step <= -32; step += 16) {
		MPI_Type_create_resized(one, 0, step, &t);
		MPI_Type_commit(&t);
		for (int c = 0; c < 4; c++)
			for (int how = 0; how < 6; how++)
				wrong += one_wrong(op, t, counts[c] * ranks, how);
		MPI_Type_free(&t);
	}
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d wrong\n", wrong);
	MPI_Finalize();
	return 0;
}
