// SPDX-License-Identifier: BSD-3-Clause
/* stencil MIB STEPS [STATIC_MIB [EVERY]]: heat on a plate, in strips of rows, MIB MiB of them in
 * each rank, that exchange their borders in every step. STATIC_MIB MiB more are written once, and
 * read. After each EVERY steps rank 0 prints the step and the sum of all, which are the same in
 * every run. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 512 };

static int rank, ranks, rows;

static double *row(double *grid, int i)
{
	return grid + (size_t)i * WIDTH;
}

static void borders(double *grid)
{
	int up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
	int down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;

	MPI_Sendrecv(row(grid, 1), WIDTH, MPI_DOUBLE, up, 0, row(grid, rows + 1), WIDTH, MPI_DOUBLE,
		     down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(row(grid, rows), WIDTH, MPI_DOUBLE, down, 1, row(grid, 0), WIDTH, MPI_DOUBLE,
		     up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void step(double *restrict to, const double *restrict from)
{
	for (int i = 1; i <= rows; i++)
		for (int k = 1; k < WIDTH - 1; k++) {
			const double *at = from + (size_t)i * WIDTH + k;

			to[(size_t)i * WIDTH + k] =
			    0.2 * (at[0] + at[-1] + at[1] + at[-WIDTH] + at[WIDTH]);
		}
}

int main(int argc, char **argv)
{
	long mib = argc > 1 ? atol(argv[1]) : 1, steps = argc > 2 ? atol(argv[2]) : 100;
	size_t words = (size_t)(argc > 3 ? atol(argv[3]) : 0) << 17;
	long every = argc > 4 ? atol(argv[4]) : 100;
	double *grid[2], sum, all;
	uint64_t *table = malloc(words * sizeof(*table) + 1), x = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	rows = (int)(mib << 20) / (2 * WIDTH * (int)sizeof(double));
	for (int i = 0; i < 2; i++)
		grid[i] = calloc((size_t)(rows + 2) * WIDTH, sizeof(double));
	for (size_t i = 0; i < words; i++)
		table[i] = x = x * 6364136223846793005u + 1442695040888963407u;
	for (int i = 0; i < rows + 2; i++)
		for (int k = 0; k < WIDTH; k++)
			row(grid[0], i)[k] = row(grid[1], i)[k] =
			    (double)((i * 31 + k * 17 + rank * 7) % 100);
	for (long s = 1; s <= steps; s++) {
		borders(grid[s % 2]);
		step(grid[(s + 1) % 2], grid[s % 2]);
		if (s % every != 0 && s != steps)
			continue;
		sum = words ? (double)(table[(size_t)s * 4096 % words] >> 40) : 0;
		for (int i = 1; i <= rows; i++)
			for (int k = 0; k < WIDTH; k++)
				sum += row(grid[(s + 1) % 2], i)[k];
		MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
		if (rank == 0)
			printf("step %ld %.17g\n", s, all);
		fflush(stdout);
	}
	MPI_Finalize();
	free(grid[0]);
	free(grid[1]);
	free(table);
	return 0;
}
