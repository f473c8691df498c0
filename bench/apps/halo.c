/* SPDX-License-Identifier: BSD-3-Clause */
/* A stencil that waits for messages more than it computes: ./halo N STEPS relaxes a field of N
 * cells a rank, exchanges one cell with both neighbours in each step, and sums the change up in
 * every tenth. Prints the sum of all cells. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0, steps = argc > 2 ? atoi(argv[2]) : 0, rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	double *now = n > 0 ? calloc((size_t)n + 2, sizeof *now) : NULL,
	       *next = n > 0 ? calloc((size_t)n + 2, sizeof *next) : NULL;
	if (steps < 1 || !now || !next) {
		fprintf(stderr, "halo N STEPS: both above 0\n");
		MPI_Abort(MPI_COMM_WORLD, 64);
		return 64;
	}
	int left = rank ? rank - 1 : MPI_PROC_NULL,
	    right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
	double change = 0, all = 0;
	for (int i = 1; i <= n; i++)
		now[i] = (double)((rank * n + i) * 7919 % 1000);
	for (int s = 1; s <= steps; s++) {
		MPI_Request r[4];
		MPI_Irecv(&now[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &r[0]);
		MPI_Irecv(&now[n + 1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &r[1]);
		MPI_Isend(&now[1], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &r[2]);
		MPI_Isend(&now[n], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &r[3]);
		MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
		change = 0;
		for (int i = 1; i <= n; i++) {
			next[i] = 0.25 * now[i - 1] + 0.5 * now[i] + 0.25 * now[i + 1];
			change += (next[i] - now[i]) * (next[i] - now[i]);
		}
		double *t = now;
		now = next;
		next = t;
		if (s % 10 == 0)
			MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	double sum = 0;
	for (int i = 1; i <= n; i++)
		sum += now[i];
	MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("%.17g\n", all);
	free(now);
	free(next);
	MPI_Finalize();
	return 0;
}
