/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether C is A B, by Huang and Abraham's row and column sums over floating-point numbers.
 *
 * For row i let r = sum_j C_ij and s = sum_k A_ik (sum_j B_kj); without errors both are the same
 * but for rounding. With u = 2^-53 and g(m) = m u / (1 - m u), whatever the order of summation,
 *
 *     |C_ij - (AB)_ij| <= g(k) (|A||B|)_ij,   a sum of n adds g(n), the product with A once more
 * g(k): |r - s| <= g(2k + 2n + 4) sum_k |A_ik| (sum_j |B_kj|)
 *
 * So a right product is never refused, whatever the condition number of A and B. Columns likewise.
 * Where this bound is not finite (NaN, Inf or overflow in A or B) nothing can be said of the row.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "protect/protect.h"

static double gamma_of(size_t m)
{
	double mu = (double)m * 0x1p-53;

	return mu / (1 - mu);
}

static bool within(double r, double s, double bound)
{
	return !isfinite(bound) || fabs(r - s) <= bound; /* NaN in r: false */
}

/* out[i] = sum over the row; size[i] of the absolute values. */
__attribute__((target_clones("avx2", "default"), optimize("fast-math"))) static void
rows_sum(const double *x, size_t rows, size_t columns, double *out, double *size)
{
	for (size_t i = 0; i < rows; i++) {
		double sum = 0, abs_sum = 0;
		for (size_t j = 0; j < columns; j++) {
			sum += x[i * columns + j];
			abs_sum += __builtin_fabs(x[i * columns + j]);
		}
		out[i] = sum;
		size[i] = abs_sum;
	}
}

/* out = x v, size = |x| w */
__attribute__((target_clones("avx2", "default"), optimize("fast-math"))) static void
times_vector(const double *x, size_t rows, size_t columns, const double *v, const double *w,
	     double *out, double *size)
{
	for (size_t i = 0; i < rows; i++) {
		double sum = 0, abs_sum = 0;
		for (size_t j = 0; j < columns; j++) {
			sum += x[i * columns + j] * v[j];
			abs_sum += __builtin_fabs(x[i * columns + j]) * w[j];
		}
		out[i] = sum;
		size[i] = abs_sum;
	}
}

/* out[j] += sum_i v[i] x[i][j], size likewise with absolute values */
__attribute__((target_clones("avx2", "default"))) static void
vector_times(const double *x, size_t rows, size_t columns, const double *v, const double *w,
	     double *restrict out, double *restrict size)
{
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++) {
			out[j] += v[i] * x[i * columns + j];
			size[j] += w[i] * __builtin_fabs(x[i * columns + j]);
		}
}

bool hale_product(const double *C, const double *A, const double *B, size_t m, size_t n, size_t k)
{
	size_t longest = m > n ? m : n;
	double bound = 1.01 * gamma_of(2 * k + 2 * longest + 4);
	double *space = calloc(2 * k + 4 * longest + 2 * longest, sizeof *space);
	double *b = space, *bs = b + k, *r = bs + k, *rs = r + longest, *s = rs + longest,
	       *ss = s + longest, *one = ss + longest;
	bool right = true;

	if (!space)
		protect_die(HALE_EXIT_UNRECOVERABLE, "no memory to check a product of matrices");
	rows_sum(B, k, n, b, bs);
	times_vector(A, m, k, b, bs, s, ss);
	rows_sum(C, m, n, r, rs);
	for (size_t i = 0; i < m; i++)
		right &= within(r[i], s[i], bound * ss[i]);
	if (right) {
		memset(space, 0, (2 * k + 4 * longest) * sizeof *space);
		for (size_t i = 0; i < longest; i++)
			one[i] = 1;
		vector_times(A, m, k, one, one, b, bs);
		vector_times(B, k, n, b, bs, s, ss);
		vector_times(C, m, n, one, one, r, rs);
		for (size_t j = 0; j < n; j++)
			right &= within(r[j], s[j], bound * ss[j]);
	}
	free(space);
	return right;
}
