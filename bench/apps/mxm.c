// SPDX-License-Identifier: BSD-3-Clause
/* Blocked matrix multiplication, C = A·B: mxm N BLOCK (seed 002, figure 2). Each rank has a band of
 * rows of A and C. Bands of B go round a ring, column by column of blocks, each in a task of its
 * own beside those that compute.
 *
 * A band of B is kept by columns of blocks: column j is `rows` × BLOCK numbers in one piece. */
#include "app.h"

static long n, block, rows, nrow, ncol;

/* c += a·b: a is BLOCK × rows, b is rows × BLOCK. */
static void multiply(const double *restrict a, const double *restrict b, double *restrict c)
{
	for (long i = 0; i < block; i++)
		for (long k = 0; k < rows; k++) {
			double x = a[i * rows + k];
			for (long j = 0; j < block; j++)
				c[i * block + j] += x * b[k * block + j];
		}
}

int main(int argc, char **argv)
{
	app_begin(&argc, &argv);
	n = app_number(argc, argv, 1, 1024);
	block = app_number(argc, argv, 2, 128);
	rows = n / ranks;
	nrow = rows / block;
	ncol = n / block;
	if (rows * ranks != n || nrow * block != rows) {
		fprintf(stderr, "N must be a multiple of ranks x BLOCK\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	size_t band = (size_t)(rows * n), part = (size_t)(block * rows);
	/* A by blocks of what meets one band of B */
	double *A = app_memory(band * 8), *C = app_memory(band * 8);
	double *B[2] = {app_memory(band * 8), app_memory(band * 8)};

	do {
		memset(C, 0, band * 8);
		for (size_t i = 0; i < band; i++) {
			A[i] = app_noise((uint64_t)rank * band + i) - 0.5;
			B[0][i] = app_noise((uint64_t)(rank + ranks) * band + i) - 0.5;
		}
		double began = app_start();
#pragma omp parallel
#pragma omp single
		for (int it = 0; it < ranks; it++) {
			double *now = B[it % 2], *then = B[(it + 1) % 2];
			int owner = (rank + it) % ranks, to = (rank + ranks - 1) % ranks,
			    from = (rank + 1) % ranks;

			for (long j = 0; j < ncol && it < ranks - 1; j++) {
				double *b = now + (size_t)j * part, *next = then + (size_t)j * part;
#pragma omp task depend(in : b [0:part]) depend(out : next [0:part]) firstprivate(j)
				MPI_Sendrecv(b, (int)part, MPI_DOUBLE, to, (int)j, next, (int)part,
					     MPI_DOUBLE, from, (int)j, MPI_COMM_WORLD,
					     MPI_STATUS_IGNORE);
			}
			for (long j = 0; j < ncol; j++)
				for (long i = 0; i < nrow; i++) {
					double *a = A + (size_t)(owner * nrow + i) * part,
					       *b = now + (size_t)j * part;
					double *c = C + (size_t)((i * ncol + j) * block * block);
					size_t tile = (size_t)(block * block);
#pragma omp task depend(in : a [0:part]) depend(in : b [0:part]) depend(inout : c [0:tile])
					multiply(a, b, c);
				}
		}
		app_end("mxm", app_hash(C, band * 8), MPI_Wtime() - began);
	} while (app_again());
	return 0;
}
