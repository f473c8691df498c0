/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether C is A B, by Huang and Abraham's row and column sums over floating-point numbers.
 *
 * For row i let r = sum_j C_ij and s = sum_k A_ik (sum_j B_kj); without errors both are the same
 * but for rounding. With u = 2^-53 and g(m) = m u / (1 - m u), whatever the order of summation,
 *
 *     |C_ij - (AB)_ij| <= g(k) (|A||B|)_ij
 *     |r - s|          <= g(2k + 2n + 4) sum_k |A_ik| (sum_j |B_kj|)
 *
 * since a sum of n adds g(n), and the product with A adds g(k) once more;
 * and what underflows adds at most the smallest normal number for each operation. So a right
 * product is never refused, whatever the condition number of A and B. Columns likewise. C = alpha A
 * B + beta C' adds |beta| |C'| to |alpha| |A||B|, and two roundings. Where this bound is not finite
 * (NaN, Inf or overflow in A or B) nothing can be said of the row.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "protect/abft.h"
#include "protect/protect.h"

double rounding(size_t m)
{
	double mu = (double)m * 0x1p-53;

	return 1.01 * mu / (1 - mu);
}

bool within(double r, double s, double bound)
{
	return !isfinite(bound) || fabs(r - s) <= bound; /* NaN in r: false */
}

__attribute__((target_clones("avx2", "default"), optimize("fast-math"))) static void
row_sum(const double *x, size_t columns, double *out, double *size)
{
	double sum = 0, abs_sum = 0;

	for (size_t j = 0; j < columns; j++) {
		sum += x[j];
		abs_sum += __builtin_fabs(x[j]);
	}
	*out = sum;
	*size = abs_sum;
}

__attribute__((target_clones("avx2", "default"), optimize("fast-math"))) static void
row_times(const double *x, size_t columns, const double *v, const double *w, double *out,
	  double *size)
{
	double sum = 0, abs_sum = 0;

	for (size_t j = 0; j < columns; j++) {
		sum += x[j] * v[j];
		abs_sum += __builtin_fabs(x[j]) * w[j];
	}
	*out = sum;
	*size = abs_sum;
}

__attribute__((target_clones("avx2", "default"))) static void
row_add(const double *x, size_t columns, double v, double w, double *restrict out,
	double *restrict size)
{
	for (size_t j = 0; j < columns; j++) {
		out[j] += v * x[j];
		size[j] += w * __builtin_fabs(x[j]);
	}
}

void matrix_times(const struct matrix *x, const double *v, const double *w, double *out,
		  double *size)
{
	for (size_t i = 0; i < x->rows; i++)
		if (v)
			row_times(x->x + i * x->ld, x->columns, v, w, &out[i], &size[i]);
		else
			row_sum(x->x + i * x->ld, x->columns, &out[i], &size[i]);
}

void matrix_times_left(const struct matrix *x, const double *v, const double *w, double *out,
		       double *size)
{
	memset(out, 0, x->columns * sizeof *out);
	memset(size, 0, x->columns * sizeof *size);
	for (size_t i = 0; i < x->rows; i++)
		row_add(x->x + i * x->ld, x->columns, v ? v[i] : 1, w ? w[i] : 1, out, size);
}

/* The sums of C that A, B and the C before tell, and their rounding. */
struct expected {
	double *row, *row_bound, *column, *column_bound;
};

static void expected_find(const struct matrix *A, const struct matrix *B, double alpha, double beta,
			  const struct matrix *before, struct expected *e)
{
	size_t m = A->rows, n = B->columns, k = A->columns, longest = m > n ? m : n;
	double *v = abft_memory(2 * k), *old = abft_memory(2 * longest);
	double bound = rounding(2 * k + 2 * longest + 12);
	double tiny = DBL_MIN * (double)(2 * k + 6) * (double)(longest + 2);

	matrix_times(B, NULL, NULL, v, v + k);
	matrix_times(A, v, v + k, e->row, e->row_bound);
	matrix_times_left(A, NULL, NULL, v, v + k);
	matrix_times_left(B, v, v + k, e->column, e->column_bound);
	for (int side = 0; side < 2; side++) {
		double *sum = side ? e->column : e->row;
		double *size = side ? e->column_bound : e->row_bound;
		if (beta != 0 && side)
			matrix_times_left(before, NULL, NULL, old, old + longest);
		else if (beta != 0)
			matrix_times(before, NULL, NULL, old, old + longest);
		for (size_t i = 0; i < (side ? n : m); i++) {
			sum[i] = alpha * sum[i] + (beta != 0 ? beta * old[i] : 0);
			size[i] = bound * (fabs(alpha) * size[i] +
					   (beta != 0 ? fabs(beta) * old[longest + i] : 0)) +
				  tiny;
		}
	}
	free(v);
	free(old);
}

/* Notes rows and columns of C whose sums are wrong; the number of both. */
static size_t wrong_find(const struct matrix *C, const struct expected *e, bool *rows,
			 bool *columns, bool rows_only)
{
	size_t longest = C->rows > C->columns ? C->rows : C->columns, wrong = 0;
	double *sum = abft_memory(2 * longest);

	matrix_times(C, NULL, NULL, sum, sum + longest);
	for (size_t i = 0; i < C->rows; i++)
		wrong += rows[i] = !within(sum[i], e->row[i], e->row_bound[i]);
	if (!wrong || !rows_only) {
		matrix_times_left(C, NULL, NULL, sum, sum + longest);
		for (size_t j = 0; j < C->columns; j++)
			wrong += columns[j] = !within(sum[j], e->column[j], e->column_bound[j]);
	}
	free(sum);
	return wrong;
}

static struct expected expected_memory(size_t m, size_t n)
{
	double *space = abft_memory(2 * m + 2 * n);

	return (struct expected){space, space + m, space + 2 * m, space + 2 * m + n};
}

bool hale_product(const double *C, const double *A, const double *B, size_t m, size_t n, size_t k)
{
	struct matrix a = {A, m, k, k}, b = {B, k, n, n}, c = {C, m, n, n};
	struct expected e = expected_memory(m, n);
	bool *marks = (bool *)abft_memory((m + n) / sizeof(double) + 1), right;

	expected_find(&a, &b, 1, 0, NULL, &e);
	right = wrong_find(&c, &e, marks, marks + m, true) == 0;
	free(e.row);
	free(marks);
	return right;
}

/* Computes the elements at the crossings again: an error of one element shows in its row and its
 * column. The number of elements; 0 when there are none or too many. */
static size_t crossings_mend(const struct matrix *A, const struct matrix *B, double alpha,
			     double beta, const double *before, const struct matrix *C,
			     const bool *rows, const bool *columns)
{
	size_t bad_rows = 0, bad_columns = 0, most = C->rows + C->columns;

	for (size_t i = 0; i < C->rows; i++)
		bad_rows += rows[i];
	for (size_t j = 0; j < C->columns; j++)
		bad_columns += columns[j];
	if (bad_rows * bad_columns > most)
		return 0;
	for (size_t i = 0; i < C->rows; i++)
		for (size_t j = 0; rows[i] && j < C->columns; j++) {
			double sum = 0;
			if (!columns[j])
				continue;
			for (size_t l = 0; l < A->columns; l++)
				sum += A->x[i * A->ld + l] * B->x[l * B->ld + j];
			((double *)(uintptr_t)C->x)[i * C->ld + j] =
			    alpha * sum + (before ? beta * before[i * C->columns + j] : 0);
		}
	return bad_rows * bad_columns;
}

bool hale_dgemm(size_t m, size_t n, size_t k, double alpha, const double *A, size_t lda,
		const double *B, size_t ldb, double beta, double *C, size_t ldc,
		struct hale_abft *done)
{
	struct matrix a = {A, m, k, lda}, b = {B, k, n, ldb}, c = {C, m, n, ldc};
	struct matrix old = {NULL, m, n, n};
	struct expected e = expected_memory(m, n);
	bool *marks = (bool *)abft_memory((m + n) / sizeof(double) + 1), right = false;
	double *before = NULL;
	struct hale_abft none = {0};

	done = done ? done : &none;
	if (beta != 0) {
		old.x = before = abft_memory(m * n);
		matrix_copy(C, ldc, before, n, m, n);
	}
	expected_find(&a, &b, alpha, beta, &old, &e);
	for (int attempt = 0; attempt < ABFT_ATTEMPTS && !right; attempt++) {
		if (attempt && before)
			matrix_copy(before, n, C, ldc, m, n);
		done->recomputed += attempt > 0;
		blas_gemm(m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
		done->checks++;
		right = wrong_find(&c, &e, marks, marks + m, false) == 0;
		if (right)
			break;
		done->detected++;
		size_t mended = crossings_mend(&a, &b, alpha, beta, before, &c, marks, marks + m);
		right = mended && wrong_find(&c, &e, marks, marks + m, false) == 0;
		done->corrected += right ? mended : 0;
	}
	free(before);
	free(e.row);
	free(marks);
	return right;
}
