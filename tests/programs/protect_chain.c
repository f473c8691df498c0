/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/* E = A B D with protected regions (seed 000, figure 4.10). ./protect_chain N FILE: E goes to FILE, and the
 * sum of its elements to stdout, so that it prints the same whatever is corrected on the way. */
#include <stdio.h>
#include <stdlib.h>

static void load(double *x, int n, unsigned seed)
{
	for (int i = 0; i < n * n; i++) {
		seed = seed * 1664525u + 1013904223u;
		x[i] = (double)(seed >> 8) / 16777216.0 - 0.5;
	}
}

static void mmult(const double *a, const double *b, double *c, int n)
{
#pragma omp parallel for
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			double s = 0;
			for (int k = 0; k < n; k++)
				s += a[i * n + k] * b[k * n + j];
			c[i * n + j] = s;
		}
}

static void store(const double *e, int n, const char *path)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(e, sizeof *e, (size_t)n * n, f) != (size_t)n * n)
		perror(path);
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 64;
	size_t bytes = (size_t)n * n * sizeof(double);
	double *A = malloc(bytes), *B = malloc(bytes), *C = malloc(bytes);
	double *D = malloc(bytes), *E = malloc(bytes), sum = 0;

	load(A, n, 1);
	load(B, n, 2);
#pragma hale protect Check(sum(A[0:n*n]), sum(B[0:n*n])) \
	Recover(correct(A), load(A, n, 1), correct(B), load(B, n, 2)) Continue
	mmult(A, B, C, n);

	load(D, n, 3);
#pragma hale protect Check(sum(C[0:n*n]), sum(D[0:n*n])) Recover(correct(C), correct(D), load(D, n, 3)) Continue
	mmult(C, D, E, n);
#pragma hale protect Check(sum(E[0:n*n])) Recover(correct(E))
	store(E, n, argc > 2 ? argv[2] : "E");

	FILE *f = fopen(argc > 2 ? argv[2] : "E", "rb");
	for (double x; f && fread(&x, sizeof x, 1, f) == 1;)
		sum += x;
	printf("%.17g\n", sum);
	if (f)
		fclose(f);
	free(A), free(B), free(C), free(D), free(E);
	return 0;
}
