/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/* Seed 000, figures 4.10 and 4.11: E = A B D, with the seed's words. */
#include <stdlib.h>

void Load(double *x, int n, const char *file);
void Store(const double *x, int n, const char *file);
void mmult(const double *a, const double *b, double *c, int n);

void chain(int n)
{
	size_t bytes = (size_t)n * n * sizeof(double);
	double *A = malloc(bytes), *B = malloc(bytes), *C = malloc(bytes);
	double *D = malloc(bytes), *E = malloc(bytes);

	Load(A, n, "A");
	Load(B, n, "B");
#pragma protect Check(Checker(A[0:n][0:n]), Checker(B[0:n][0:n])) \
	Recover(Correct(A), Load(A, n, "A"), Correct(B), Load(B, n, "B")) \
	Continue
	mmult(A, B, C, n);

	Load(D, n, "D");
#pragma protect Check(Checker(C[0:n][0:n]), Checker(D[0:n][0:n])) \
	Recover(Correct(C), Correct(D), Load(D, n, "D")) Continue
	mmult(C, D, E, n);
#pragma protect Check(Checker(E[0:n][0:n])) \
	Recover(Correct(E))
	Store(E, n, "E");
	free(A), free(B), free(C), free(D), free(E);
}
