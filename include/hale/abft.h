/* SPDX-License-Identifier: BSD-3-Clause */
/* Linear algebra that checks its own results (algorithm-based fault tolerance): what strikes a
 * result while it is computed is found, and computed again. Link with -lhale_protect and any CBLAS.
 *
 * All matrices are row by row; ld is the number of elements from one row to the next. The judges
 * compare sums of rows and columns within the rounding of any order of summation, so that a right
 * result is never refused, whatever the condition number. An error that is smaller than that
 * rounding passes. Sources: Huang and Abraham 1984; Higham, Accuracy and Stability, theorems 9.3
 * and 10.3; seed 000, 4.5.1.
 *
 * All functions block, may be called by several threads at once, and change nothing but what they
 * are said to. False means that three attempts gave a wrong result: the error is permanent, or the
 * inputs are damaged. The program ends with a sentence when it is linked with no CBLAS.
 */
#ifndef HALE_ABFT_H
#define HALE_ABFT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What was done; counted up. NULL where a caller does not care. */
struct hale_abft {
	unsigned long long checks, detected;
	unsigned long long corrected;  /* elements that were computed again */
	unsigned long long recomputed; /* times that all was computed again */
};

/* C = alpha A B + beta C: C is m x n, A m x k, B k x n. Keeps a copy of C when beta is not 0. */
bool hale_dgemm(size_t m, size_t n, size_t k, double alpha, const double *A, size_t lda,
		const double *B, size_t ldb, double beta, double *C, size_t ldc,
		struct hale_abft *done);

/* P A = L U with partial pivoting, in place: U and, below the diagonal, L, whose diagonal is 1. Row
 * i was exchanged with row pivot[i] >= i, in this order. Keeps a copy of A (n x n) meanwhile.
 * *singular, if not NULL, says whether a pivot was 0. */
bool hale_dgetrf(size_t n, double *A, size_t ld, size_t *pivot, bool *singular,
		 struct hale_abft *done);

/* A = L L^T of a symmetric positive definite matrix, whose lower triangle becomes L; the upper one
 * is neither read nor written. *definite, if not NULL, says whether A was positive definite. */
bool hale_dpotrf(size_t n, double *A, size_t ld, bool *definite, struct hale_abft *done);

/* y = A x, for hale_cg. */
typedef void hale_operator_t(void *arg, const double *x, double *y);

/* Solves A x = b, A symmetric positive definite and given as a function, by conjugate gradients
 * from x, until |b - A x| <= tolerance |b|, which is measured and not only updated. norm is at
 * least the largest sum of absolute values of a row of A, width the largest number of elements of a
 * row. Each `every` iterations (0: 32) the residual is measured; where it differs from the updated
 * one by more than rounding can do, x goes back to where both agreed. *iterations (may be NULL)
 * holds the limit before, and the iterations made behind. False: not converged within the limit. */
bool hale_cg(size_t n, hale_operator_t *apply, void *arg, double norm, size_t width,
	     const double *b, double *x, double tolerance, size_t every, size_t *iterations,
	     struct hale_abft *done);

#ifdef __cplusplus
}
#endif
#endif
