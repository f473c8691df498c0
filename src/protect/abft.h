/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernels of include/hale/abft.h share. */
#ifndef HALE_PROTECT_ABFT_H
#define HALE_PROTECT_ABFT_H

#include <stdbool.h>
#include <stddef.h>
#include "hale/abft.h"

/* After so many attempts an error counts as permanent. */
#define ABFT_ATTEMPTS 3

struct matrix {
	const double *x;
	size_t rows, columns, ld;
};

/* out = x v and size = |x| w; v and w NULL stand for ones. */
void matrix_times(const struct matrix *x, const double *v, const double *w, double *out,
		  double *size);
/* out = v x and size = w |x|, by columns. */
void matrix_times_left(const struct matrix *x, const double *v, const double *w, double *out,
		       double *size);
/* g(m) = m u / (1 - m u), with a little for the rounding of the bound itself. */
double rounding(size_t m);
/* Whether r and s are the same within bound; true where bound is not finite. */
bool within(double r, double s, double bound);

/* C = alpha A B + beta C by the program's CBLAS. */
void blas_gemm(size_t m, size_t n, size_t k, double alpha, const double *A, size_t lda,
	       const double *B, size_t ldb, double beta, double *C, size_t ldc);
/* B = T^-1 B (left) or B T^-T (right) for a lower triangular T; unit: its diagonal counts as 1. */
void blas_trsm(bool left, bool unit, size_t m, size_t n, const double *T, size_t ldt, double *B,
	       size_t ldb);

/* Memory, or the end of the program with a sentence. */
double *abft_memory(size_t doubles);
void matrix_copy(const double *from, size_t ld_from, double *to, size_t ld_to, size_t rows,
		 size_t columns);

/* Tests set it: called behind each step of a kernel with the block that the step has written. */
extern void (*abft_step)(double *x, size_t rows, size_t columns, size_t ld);

#endif
