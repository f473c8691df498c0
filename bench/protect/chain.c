/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/* E = A B D with the BLAS of the machine (seed 000, figure 4.10): ./chain N FOLDER reads A, B, D from FOLDER
 * and writes E there. Built by cc it is unprotected. With PRODUCT the results are judged while they are computed,
 * too; with REDUNDANT they are computed twice and compared, and what is read is read twice. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;

static int load(double *x, int n, const char *name)
{
	char path[512];
	size_t count = (size_t)n * n, got = 0;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "rb");
	if (f) {
		setvbuf(f, NULL, _IONBF, 0);
		got = fread(x, sizeof *x, count, f);
		fclose(f);
	}
	return got == count;
}

static int store(const double *x, int n, const char *name)
{
	char path[512];
	size_t count = (size_t)n * n, put = 0;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "wb");
	if (f) {
		setvbuf(f, NULL, _IONBF, 0);
		put = fwrite(x, sizeof *x, count, f);
		if (fclose(f) != 0)
			put = 0;
	}
	return put == count;
}

static void mmult(const double *a, const double *b, double *c, int n)
{
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, c, n);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0, fine;
	folder = argc > 2 ? argv[2] : ".";
	size_t bytes = (size_t)n * n * sizeof(double);
	double *A = malloc(bytes), *B = malloc(bytes), *C = malloc(bytes), *D = malloc(bytes), *E = malloc(bytes);

	if (n <= 0 || !A || !B || !C || !D || !E) {
		fprintf(stderr, "chain N FOLDER: N > 0\n");
		return 64;
	}
	fine = load(A, n, "A") && load(B, n, "B");
#ifdef PRODUCT
#pragma protect Check(sum(A[0:n][0:n]), sum(B[0:n][0:n]), product(C[0:n][0:n], A, B, n)) \
	Recover(correct(A), load(A, n, "A"), correct(B), load(B, n, "B")) Continue
#elif defined REDUNDANT
#pragma protect Redundancy(2) Check(sum(A[0:n][0:n]), sum(B[0:n][0:n])) \
	Confirm(load(A, n, "A"), load(B, n, "B")) \
	Recover(correct(A), load(A, n, "A"), correct(B), load(B, n, "B")) Continue
#else
#pragma protect Check(sum(A[0:n][0:n]), sum(B[0:n][0:n])) \
	Recover(correct(A), load(A, n, "A"), correct(B), load(B, n, "B")) Continue
#endif
	mmult(A, B, C, n);
	fine = fine && load(D, n, "D");
#ifdef PRODUCT
#pragma protect Check(sum(C[0:n][0:n]), sum(D[0:n][0:n]), product(E[0:n][0:n], C, D, n)) \
	Recover(correct(C), correct(D), load(D, n, "D")) Continue
#elif defined REDUNDANT
#pragma protect Redundancy(2) Check(sum(C[0:n][0:n]), sum(D[0:n][0:n])) Confirm(load(D, n, "D")) \
	Recover(correct(C), correct(D), load(D, n, "D")) Continue
#else
#pragma protect Check(sum(C[0:n][0:n]), sum(D[0:n][0:n])) Recover(correct(C), correct(D), load(D, n, "D")) Continue
#endif
	mmult(C, D, E, n);
#pragma protect Check(sum(E[0:n][0:n])) Recover(correct(E))
	fine = fine && store(E, n, "E");
	free(A), free(B), free(C), free(D), free(E);
	if (!fine)
		fprintf(stderr, "chain: can't read A, B, D or write E in %s\n", folder);
	return !fine;
}
