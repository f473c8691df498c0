/* SPDX-License-Identifier: BSD-3-Clause */
/* HALE_LONG=1: a million products of ill-conditioned matrices are judged, instead of some
 * thousands. */
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/base.h"
#include "protect/abft.h"
#include "protect/protect.h"

static uint64_t state = 11;

static double drawn(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (double)(state >> 11) * 0x1p-53 - 0.5;
}

static double *numbers(size_t count)
{
	double *x = malloc(count * sizeof *x);

	for (size_t i = 0; i < count; i++)
		x[i] = drawn();
	return x;
}

/* x = (I - 2 v v^T / v^T v) x, for a random v: an orthogonal matrix. */
static void reflect(double *x, size_t n)
{
	double *v = numbers(n), vv = 0;

	for (size_t i = 0; i < n; i++)
		vv += v[i] * v[i];
	for (size_t j = 0; j < n; j++) {
		double s = 0;
		for (size_t i = 0; i < n; i++)
			s += v[i] * x[i * n + j];
		for (size_t i = 0; i < n; i++)
			x[i * n + j] -= 2 * s / vv * v[i];
	}
	free(v);
}

/* n x n with this condition number: singular values from 1 down to 1 / condition. */
static double *conditioned(size_t n, double condition, bool symmetric)
{
	double *x = calloc(n * n, sizeof *x), *v = numbers(n), vv = 0;

	for (size_t i = 0; i < n; i++)
		vv += v[i] * v[i];
	for (size_t i = 0; i < n; i++)
		x[i * n + i] = pow(condition, -(double)i / (double)(n - 1));
	if (!symmetric) {
		reflect(x, n);
		for (size_t i = 0; i < n; i++) /* from the right */
			for (size_t j = i + 1; j < n; j++) {
				double swap = x[i * n + j];
				x[i * n + j] = x[j * n + i];
				x[j * n + i] = swap;
			}
		reflect(x, n);
	} else { /* H x H, H = I - 2 v v^T / v^T v, made exactly symmetric */
		double *h = malloc(n * n * sizeof *h);
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < n; j++) {
				double s = 0;
				for (size_t k = 0; k < n; k++)
					s += ((i == k) - 2 * v[i] * v[k] / vv) * x[k * n + k] *
					     ((j == k) - 2 * v[j] * v[k] / vv);
				h[i * n + j] = s;
			}
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < n; j++)
				x[i * n + j] = h[(i < j ? i : j) * n + (i < j ? j : i)];
		free(h);
	}
	free(v);
	return x;
}

/* ---- faults: in step number fault_at, one element ---- */

static int fault_at, step_now;
static double fault_value;

static void fault(double *x, size_t rows, size_t columns, size_t ld)
{
	if (step_now++ == fault_at && rows && columns) {
		double *e = x + (state >> 33) % rows * ld + (state >> 20) % columns;
		*e = isnan(fault_value) ? fault_value : *e + fault_value;
	}
}

static void arm(int at, double value)
{
	abft_step = at < 0 ? NULL : fault;
	fault_at = at;
	fault_value = value;
	step_now = 0;
}

static long rounds(long few, long many)
{
	return getenv("HALE_LONG") ? many : few;
}

static void right_products_are_never_refused(void **unused)
{
	static const size_t sizes[] = {1, 3, 8, 12, 16};
	long wrong = 0, count = rounds(4000, 1000000);

	for (long turn = 0; turn < count;) {
		size_t n = sizes[(turn / 50) % ARRAY_LEN(sizes)];
		double *A =
		    n > 1 ? conditioned(n, pow(10, 12 * (drawn() + 0.5)), false) : numbers(1);
		double *B = n > 1 ? conditioned(n, 1e12, false) : numbers(1);
		double *C = calloc(n * n, sizeof *C);
		for (int again = 0; again < 50; again++, turn++) {
			/* rows and columns of very different size, now and then denormal */
			double scale = ldexp(1, (int)(drawn() * (again % 10 ? 40 : 2000)));
			for (size_t i = 0; i < n; i++) {
				A[(turn % (long)n) * (long)n + (long)i] *= scale;
				B[i * n + (size_t)(turn % (long)n)] /= scale;
			}
			blas_gemm(n, n, n, 1, A, n, B, n, 0, C, n);
			wrong += !hale_product(C, A, B, n, n, n);
		}
		free(A), free(B), free(C);
	}
	assert_int_equal(wrong, 0);
}

static void a_struck_element_of_a_product_is_computed_again(void **unused)
{
	static const double values[] = {1e-3, -1, 1e300, NAN, INFINITY};
	const size_t m = 70, n = 90, k = 50, ld = 101;
	double *A = numbers(m * ld), *B = numbers(k * ld), *C = numbers(m * ld);
	double *old = malloc(m * ld * sizeof *old), *want = malloc(m * ld * sizeof *want);

	memcpy(old, C, m * ld * sizeof *C);
	for (int beta = 0; beta < 2; beta++) {
		arm(-1, 0);
		memcpy(want, old, m * ld * sizeof *C);
		assert_true(hale_dgemm(m, n, k, 0.75, A, ld, B, ld, beta * -0.5, want, ld, NULL));
		for (size_t v = 0; v < ARRAY_LEN(values); v++) {
			struct hale_abft done = {0};
			memcpy(C, old, m * ld * sizeof *C);
			arm(0, values[v]);
			drawn();
			assert_true(
			    hale_dgemm(m, n, k, 0.75, A, ld, B, ld, beta * -0.5, C, ld, &done));
			assert_int_equal(done.detected, 1);
			assert_int_equal(done.corrected, 1);
			assert_int_equal(done.recomputed, 0);
			for (size_t i = 0; i < m * ld; i++)
				assert_true(fabs(C[i] - want[i]) <= 1e-13);
		}
	}
	arm(-1, 0);
	free(A), free(B), free(C), free(old), free(want);
}

/* The largest |P A - L U| or |A - L L^T|, in units of the rounding of its row's sum. */
static double residual(size_t n, const double *A, const double *F, const size_t *pivot)
{
	double *PA = malloc(n * n * sizeof *PA), worst = 0;

	memcpy(PA, A, n * n * sizeof *PA);
	for (size_t i = 0; pivot && i < n; i++)
		for (size_t j = 0; pivot[i] != i && j < n; j++) {
			double swap = PA[i * n + j];
			PA[i * n + j] = PA[pivot[i] * n + j];
			PA[pivot[i] * n + j] = swap;
		}
	for (size_t i = 0; i < n; i++) {
		double most = 0, row = 0;
		for (size_t j = 0; j < n; j++) {
			double s = 0;
			for (size_t k = 0; k <= (i < j ? i : j); k++) {
				double l = pivot && k == i ? 1 : F[i * n + k];
				double u = pivot ? F[k * n + j] : F[j * n + k];
				s += l * u;
				row += fabs(l * u);
			}
			if (!pivot && j > i)
				continue; /* not written */
			s = fabs(PA[i * n + j] - s);
			most = s <= most ? most : s; /* NaN: NaN */
		}
		most /= row * DBL_EPSILON + DBL_MIN;
		worst = most <= worst ? worst : most;
	}
	free(PA);
	return worst;
}

static void factorizations_are_right_whatever_strikes(void **unused)
{
	static const double values[] = {3e-4, -2, 1e200, NAN};
	const size_t n = 150;
	double *F = malloc(n * n * sizeof *F);
	size_t pivot[150];

	for (int lu = 0; lu < 2; lu++)
		for (int condition = 0; condition <= 12; condition += 6) {
			double *A = conditioned(n, pow(10, condition), !lu);
			for (int at = -1; at < 12; at++)
				for (size_t v = 0; v < ARRAY_LEN(values); v++) {
					struct hale_abft done = {0};
					bool odd = false, fine;
					memcpy(F, A, n * n * sizeof *F);
					arm(at, values[v]);
					drawn();
					fine = lu ? hale_dgetrf(n, F, n, pivot, &odd, &done)
						  : hale_dpotrf(n, F, n, &odd, &done);
					assert_true(fine && odd == !lu);
					double off = residual(n, A, F, lu ? pivot : NULL);
					/* an error below the rounding of a row's sum may stay */
					assert_true(off <= 8 * (double)n);
					if (at < 0)
						assert_int_equal(done.detected, 0);
				}
			free(A);
		}
	arm(-1, 0);
	free(F);
}

static void odd_matrices_are_told_from_damaged_ones(void **unused)
{
	double A[] = {1, 2, 2, 4}, B[] = {1, 2, 2, 1};
	struct hale_abft done = {0};
	bool singular = false, definite = true;
	size_t pivot[2];

	assert_true(hale_dgetrf(2, A, 2, pivot, &singular, &done) && singular);
	assert_true(hale_dpotrf(2, B, 2, &definite, &done) && !definite);
	assert_int_equal(done.detected, 0);
	assert_true(hale_dgetrf(0, NULL, 1, pivot, NULL, NULL));
	assert_true(hale_dgemm(2, 2, 0, 1, A, 2, B, 2, 0, A, 2, NULL) && A[3] == 0);
}

static void no_alarm_for_factors_of_ill_conditioned_matrices(void **unused)
{
	long wrong = 0, count = rounds(300, 30000);
	size_t pivot[80];

	for (long turn = 0; turn < count; turn++) {
		size_t n = 2 + (size_t)turn % 79;
		bool lu = turn % 2, odd;
		double *A = conditioned(n, pow(10, 12 * (drawn() + 0.5)), !lu);
		struct hale_abft done = {0};
		bool fine = lu ? hale_dgetrf(n, A, n, pivot, &odd, &done)
			       : hale_dpotrf(n, A, n, &odd, &done);
		wrong += !fine || done.detected || odd != !lu;
		free(A);
	}
	assert_int_equal(wrong, 0);
}

struct dense {
	const double *A;
	size_t n;
};

static void dense_times(void *arg, const double *x, double *y)
{
	const struct dense *d = arg;

	for (size_t i = 0; i < d->n; i++) {
		y[i] = 0;
		for (size_t j = 0; j < d->n; j++)
			y[i] += d->A[i * d->n + j] * x[j];
	}
}

static double row_norm(const double *A, size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i++) {
		double sum = 0;
		for (size_t j = 0; j < n; j++)
			sum += fabs(A[i * n + j]);
		most = fmax(most, sum);
	}
	return most;
}

static void gradients_find_the_solution_whatever_strikes(void **unused)
{
	static const double values[] = {0.1, -1e3, 1e300, NAN};
	const size_t n = 60;

	for (int condition = 1; condition <= 4; condition++) {
		double *A = conditioned(n, pow(10, condition), true), *b = numbers(n);
		double *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y), bb = 0, rr;
		struct dense d = {A, n};
		for (size_t i = 0; i < n; i++)
			bb += b[i] * b[i];
		for (int at = -1; at < 20; at += 3)
			for (size_t v = 0; v < ARRAY_LEN(values); v++) {
				struct hale_abft done = {0};
				size_t made = 5000;
				memset(x, 0, n * sizeof *x);
				arm(at < 0 ? -1 : at, values[v]);
				assert_true(hale_cg(n, dense_times, &d, row_norm(A, n), n, b, x,
						    1e-10, 8, &made, &done));
				dense_times(&d, x, y);
				rr = 0;
				for (size_t i = 0; i < n; i++)
					rr += (b[i] - y[i]) * (b[i] - y[i]);
				assert_true(sqrt(rr) <= 1.01e-10 * sqrt(bb));
				assert_int_equal(done.detected, at >= 0);
			}
		free(A), free(b), free(x), free(y);
	}
	arm(-1, 0);
}

static void no_alarm_for_gradients_that_converge_slowly(void **unused)
{
	long alarms = 0, checks = 0, count = rounds(40, 4000);

	for (long turn = 0; turn < count; turn++) {
		const size_t n = 40;
		double *A = conditioned(n, pow(10, 12 * (drawn() + 0.5)), true), *b = numbers(n);
		double *x = calloc(n, sizeof *x);
		struct dense d = {A, n};
		struct hale_abft done = {0};
		size_t made = 2000;
		(void)hale_cg(n, dense_times, &d, row_norm(A, n), n, b, x, 1e-13, 4, &made, &done);
		alarms += (long)done.detected;
		checks += (long)done.checks;
		free(A), free(b), free(x);
	}
	assert_true(checks > count);
	assert_int_equal(alarms, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(right_products_are_never_refused),
	    cmocka_unit_test(a_struck_element_of_a_product_is_computed_again),
	    cmocka_unit_test(factorizations_are_right_whatever_strikes),
	    cmocka_unit_test(odd_matrices_are_told_from_damaged_ones),
	    cmocka_unit_test(no_alarm_for_factors_of_ill_conditioned_matrices),
	    cmocka_unit_test(gradients_find_the_solution_whatever_strikes),
	    cmocka_unit_test(no_alarm_for_gradients_that_converge_slowly),
	};

	setenv("OPENBLAS_NUM_THREADS", "1", 0);
	if (!dlopen("libopenblas.so.0", RTLD_NOW | RTLD_GLOBAL) &&
	    !dlopen("libblas.so.3", RTLD_NOW | RTLD_GLOBAL)) {
		print_message("no CBLAS on this machine: %s\n", dlerror());
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
