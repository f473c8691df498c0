/* SPDX-License-Identifier: BSD-3-Clause */
/* LU and Cholesky factorizations that are checked as a whole.
 *
 * Both are blocked: a panel, a triangular solve, a product for the rest of the matrix. The products
 * are those of hale_dgemm, which mends single elements at once. What strikes elsewhere is found at
 * the end, since for any right factorization (Higham, theorems 9.3 and 10.3)
 *
 *     |P A - L U| <= g(n) |L||U|          |A - L L^T| <= g(n + 1) |L||L^T|
 *
 * holds element by element. Sums of rows, once with the weights 1 and once with 1 2 3 …, are
 * compared within it. The bound knows nothing of the condition number.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "protect/abft.h"
#include "protect/protect.h"

#define BLOCK 64

/* The weight of column j: two sets, so that errors that cancel in one show in the other. */
static double weight(int set, size_t j)
{
	return set ? 1.0 + (double)(j % 509) / 509.0 : 1.0;
}

/* r[i] = sum_j A_ij w_j, of a symmetric matrix by its lower triangle; s, size of L U or L L^T. */
struct judged {
	double *r, *s, *size, *t, *ts, *v;
};

static void rows_of_lu(size_t n, const double *F, size_t ld, int set, struct judged *j)
{
	for (size_t i = 0; i < n; i++) { /* t = U w */
		double sum = 0, size = 0;
		for (size_t c = i; c < n; c++) {
			double w = weight(set, c);
			sum += F[i * ld + c] * w;
			size += fabs(F[i * ld + c]) * w;
		}
		j->t[i] = sum;
		j->ts[i] = size;
	}
	for (size_t i = 0; i < n; i++) { /* s = L t */
		double sum = j->t[i], size = j->ts[i];
		for (size_t c = 0; c < i; c++) {
			sum += F[i * ld + c] * j->t[c];
			size += fabs(F[i * ld + c]) * j->ts[c];
		}
		j->s[i] = sum;
		j->size[i] = size;
	}
}

static void rows_of_llt(size_t n, const double *F, size_t ld, int set, struct judged *j)
{
	memset(j->t, 0, n * sizeof *j->t);
	memset(j->ts, 0, n * sizeof *j->ts);
	for (size_t i = 0; i < n; i++) { /* t = L^T w */
		double w = weight(set, i);
		for (size_t c = 0; c <= i; c++) {
			j->t[c] += F[i * ld + c] * w;
			j->ts[c] += fabs(F[i * ld + c]) * w;
		}
	}
	for (size_t i = 0; i < n; i++) { /* s = L t */
		double sum = 0, size = 0;
		for (size_t c = 0; c <= i; c++) {
			sum += F[i * ld + c] * j->t[c];
			size += fabs(F[i * ld + c]) * j->ts[c];
		}
		j->s[i] = sum;
		j->size[i] = size;
	}
}

static void rows_of_symmetric(size_t n, const double *A, size_t ld, int set, double *r)
{
	memset(r, 0, n * sizeof *r);
	for (size_t i = 0; i < n; i++)
		for (size_t c = 0; c <= i; c++) {
			r[i] += A[i * ld + c] * weight(set, c);
			if (c < i)
				r[c] += A[i * ld + c] * weight(set, i);
		}
}

static void rows_of_general(size_t n, const double *A, size_t ld, int set, double *r)
{
	for (size_t i = 0; i < n; i++) {
		double sum = 0;
		for (size_t c = 0; c < n; c++)
			sum += A[i * ld + c] * weight(set, c);
		r[i] = sum;
	}
}

/* pivot is NULL for Cholesky. A is the matrix as it was. */
static bool factors_right(size_t n, const double *A, const double *F, size_t ld,
			  const size_t *pivot)
{
	double *space = abft_memory(6 * n), bound = rounding(6 * n + 16);
	double tiny = DBL_MIN * (double)(4 * n + 8) * (double)(n + 2);
	struct judged j = {space,	  space + n,	 space + 2 * n,
			   space + 3 * n, space + 4 * n, space + 5 * n};
	bool right = true;

	for (size_t i = 0; i < n && pivot; i++)
		right &= pivot[i] >= i && pivot[i] < n;
	for (int set = 0; set < 2 && right; set++) {
		if (pivot) {
			rows_of_general(n, A, n, set, j.r);
			rows_of_lu(n, F, ld, set, &j);
			for (size_t i = 0; i < n; i++) {
				double swap = j.r[i];
				j.r[i] = j.r[pivot[i]];
				j.r[pivot[i]] = swap;
			}
		} else {
			rows_of_symmetric(n, A, n, set, j.r);
			rows_of_llt(n, F, ld, set, &j);
		}
		/* |A| <= |L||U| (1 + g): the rounding of r is within the same bound. The factors of
		 * finite numbers are finite: NaN and Inf there are errors, too. */
		bool finite = true;
		for (size_t i = 0; i < n; i++)
			finite &= isfinite(j.r[i]);
		for (size_t i = 0; i < n; i++)
			right &= within(j.r[i], j.s[i], bound * j.size[i] + tiny) &&
				 (!finite || isfinite(j.size[i]));
	}
	free(space);
	return right;
}

static void rows_swap(double *x, double *y, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double swap = x[i];
		x[i] = y[i];
		y[i] = swap;
	}
}

/* Columns from..to, rows from..n. False: a pivot is 0. */
static bool lu_panel(size_t n, double *A, size_t ld, size_t from, size_t to, size_t *pivot)
{
	bool fine = true;

	for (size_t c = from; c < to; c++) {
		size_t best = c;
		for (size_t i = c + 1; i < n; i++)
			if (fabs(A[i * ld + c]) > fabs(A[best * ld + c]))
				best = i;
		pivot[c] = best;
		if (best != c)
			rows_swap(A + c * ld, A + best * ld, n);
		if (A[c * ld + c] == 0) {
			fine = false;
			continue;
		}
		for (size_t i = c + 1; i < n; i++) {
			double l = A[i * ld + c] /= A[c * ld + c];
			for (size_t k = c + 1; k < to; k++)
				A[i * ld + k] -= l * A[c * ld + k];
		}
	}
	if (abft_step)
		abft_step(A + from * ld + from, n - from, to - from, ld);
	return fine;
}

static bool lu_once(size_t n, double *A, size_t ld, size_t *pivot, bool *singular,
		    struct hale_abft *done)
{
	bool fine = true;

	*singular = false;
	for (size_t c = 0; c < n && fine; c += BLOCK) {
		size_t to = c + BLOCK < n ? c + BLOCK : n, width = to - c, rest = n - to;
		*singular |= !lu_panel(n, A, ld, c, to, pivot);
		if (!rest)
			break;
		blas_trsm(true, true, width, rest, A + c * ld + c, ld, A + c * ld + to, ld);
		fine = hale_dgemm(rest, rest, width, -1, A + to * ld + c, ld, A + c * ld + to, ld,
				  1, A + to * ld + to, ld, done);
	}
	return fine;
}

/* False: not positive definite. */
static bool cholesky_panel(double *A, size_t ld, size_t width)
{
	for (size_t c = 0; c < width; c++) {
		double d = A[c * ld + c];
		for (size_t k = 0; k < c; k++)
			d -= A[c * ld + k] * A[c * ld + k];
		if (!(d > 0))
			return false;
		d = A[c * ld + c] = sqrt(d);
		for (size_t i = c + 1; i < width; i++) {
			double s = A[i * ld + c];
			for (size_t k = 0; k < c; k++)
				s -= A[i * ld + k] * A[c * ld + k];
			A[i * ld + c] = s / d;
		}
	}
	if (abft_step)
		abft_step(A, width, width, ld);
	return true;
}

/* The lower triangle of the rest minus the panel times itself transposed, block by block. */
static bool cholesky_rest(size_t n, double *A, size_t ld, size_t c, size_t to,
			  struct hale_abft *done)
{
	double *turned = abft_memory((to - c) * (n - to)), *corner = abft_memory(BLOCK * BLOCK);
	bool fine = true;

	for (size_t i = to; i < n; i++)
		for (size_t k = c; k < to; k++)
			turned[(k - c) * (n - to) + i - to] = A[i * ld + k];
	for (size_t i = to; i < n && fine; i += BLOCK) {
		size_t rows = i + BLOCK < n ? BLOCK : n - i;
		fine = hale_dgemm(rows, i - to, to - c, -1, A + i * ld + c, ld, turned, n - to, 1,
				  A + i * ld + to, ld, done);
		/* the block on the diagonal: its upper half is not ours to write */
		for (size_t r = 0; r < rows; r++)
			for (size_t k = 0; k < rows; k++)
				corner[r * BLOCK + k] = k <= r ? A[(i + r) * ld + i + k] : 0;
		fine = fine && hale_dgemm(rows, rows, to - c, -1, A + i * ld + c, ld,
					  turned + i - to, n - to, 1, corner, BLOCK, done);
		for (size_t r = 0; r < rows; r++)
			memcpy(A + (i + r) * ld + i, corner + r * BLOCK, (r + 1) * sizeof *A);
	}
	free(turned);
	free(corner);
	return fine;
}

static bool cholesky_once(size_t n, double *A, size_t ld, bool *definite, struct hale_abft *done)
{
	bool fine = true;

	*definite = true;
	for (size_t c = 0; c < n && fine && *definite; c += BLOCK) {
		size_t to = c + BLOCK < n ? c + BLOCK : n;
		*definite = cholesky_panel(A + c * ld + c, ld, to - c);
		if (to == n || !*definite)
			break;
		blas_trsm(false, false, n - to, to - c, A + c * ld + c, ld, A + to * ld + c, ld);
		fine = cholesky_rest(n, A, ld, c, to, done);
	}
	return fine;
}

static bool factor(size_t n, double *A, size_t ld, size_t *pivot, bool *odd, struct hale_abft *done)
{
	double *before = abft_memory(n * n);
	struct hale_abft none = {0};
	bool right = false, flag = false;
	int indefinite = 0;

	done = done ? done : &none;
	matrix_copy(A, ld, before, n, n, n);
	for (int attempt = 0; attempt < ABFT_ATTEMPTS && !right; attempt++) {
		for (size_t i = 0; i < n && attempt; i++) /* the upper triangle stays if not ours */
			memcpy(A + i * ld, before + i * n, (pivot ? n : i + 1) * sizeof *A);
		done->checks++;
		right = pivot ? lu_once(n, A, ld, pivot, &flag, done)
			      : cholesky_once(n, A, ld, &flag, done);
		/* an error may make a matrix indefinite; when it is so twice, it is so */
		indefinite += !pivot && right && !flag;
		if (indefinite == 2)
			break;
		right = right && (pivot || flag) && factors_right(n, before, A, ld, pivot);
		done->detected += !right && (pivot || flag);
		done->recomputed += !right && (pivot || flag);
	}
	if (!pivot && right && flag) { /* it was not so */
		done->detected += (unsigned long long)indefinite;
		done->recomputed += (unsigned long long)indefinite;
	}
	if (odd)
		*odd = flag;
	free(before);
	return right;
}

bool hale_dgetrf(size_t n, double *A, size_t ld, size_t *pivot, bool *singular,
		 struct hale_abft *done)
{
	return factor(n, A, ld, pivot, singular, done);
}

bool hale_dpotrf(size_t n, double *A, size_t ld, bool *definite, struct hale_abft *done)
{
	return factor(n, A, ld, NULL, definite, done);
}
