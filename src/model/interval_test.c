/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include "base/base.h"
#include "model/model.h"

#define YEAR_S (365.25 * 86400)
#define HOUR_S 3600.0

static void assert_near(double a, double b, double tolerance)
{
	if (!(fabs(a - b) <= tolerance))
		fail_msg("%.12g is not %.12g +- %g", a, b, tolerance);
}

static double young(double c, double m)
{
	double v;

	assert_int_equal(model_young_s(c, m, &v, NULL), HALE_OK);
	return v;
}

static double daly(double c, double m)
{
	double v;

	assert_int_equal(model_daly_s(c, m, &v, NULL), HALE_OK);
	return v;
}

static double best(double c, double m)
{
	double v;

	assert_int_equal(model_best_interval_s(c, m, &v, NULL), HALE_OK);
	return v;
}

static double wall(double work, double tau, double c, double r, double m)
{
	double v;

	assert_int_equal(model_daly_wall_s(work, tau, c, r, m, &v, NULL), HALE_OK);
	return v;
}

static void worked_examples(void **state)
{
	/* 40 s, 6 h: sqrt(2 40 21600) = 1314.53; times 1 + 0.0101430 + 0.0001029, less 40 */
	assert_near(young(40, 21600), 1314.534, 1e-3);
	assert_near(daly(40, 21600), 1288.003, 1e-3);
	assert_near(daly(100, 40), 40, 0); /* checkpoints longer than 2 M */
}

static void without_cost_or_failures_the_limits_hold(void **state)
{
	assert_near(young(0, 100), 0, 0);
	assert_near(daly(0, 100), 0, 0);
	assert_near(best(0, 100), 0, 0);
	assert_true(isinf(young(10, INFINITY)));
	assert_true(isinf(daly(10, INFINITY)));
	assert_true(isinf(best(10, INFINITY)));
	/* n pieces of work, n - 1 checkpoints */
	assert_near(wall(1000, 100, 5, 7, INFINITY), 1045, 1e-9);
	assert_near(wall(1000, 100, 5, 7, 1e12), 1045, 1e-4);
	assert_near(wall(1000, 100, 0, 0, 1e12), 1000, 1e-4);
}

static void the_best_interval_is_where_the_wall_time_is_least(void **state)
{
	for (double c = 0.01; c < 500; c *= 3)
		for (double m = 10; m < 1e7; m *= 10) {
			double work = 1e12, tau = best(c, m), least = wall(work, tau, c, 10, m);

			if (!isfinite(least))
				continue;
			/* (1 - y) e^(y + x) = 1 */
			assert_near(log1p(-tau / m) + tau / m, -c / m, 1e-7 * (c / m + 1e-3));
			assert_true(wall(work, tau * 1.01, c, 10, m) > least);
			assert_true(wall(work, tau * 0.99, c, 10, m) > least);
			assert_true(wall(work, daly(c, m), c, 10, m) >= least * (1 - 1e-12));
			if (c < 0.1 * m) { /* what the two approximations cost */
				assert_true(wall(work, daly(c, m), c, 10, m) < least * 1.0001);
				assert_true(wall(work, young(c, m), c, 10, m) < least * 1.01);
			}
		}
}

static void hopeless_jobs_take_for_ever(void **state)
{
	assert_near(best(1e9, 100), 100, 0);
	assert_true(isinf(wall(1e6, 1e5, 10, 10, 100)));
	assert_true(isinf(wall(1e6, 10, 10, 1e5, 100)));
}

static void more_failures_never_help(void **state)
{
	double last_wall = INFINITY, last_interval = 0;

	for (double m = 100; m < 1e8; m *= 2) {
		assert_true(wall(1e6, 50, 5, 20, m) < last_wall);
		assert_true(daly(5, m) > last_interval);
		last_wall = wall(1e6, 50, 5, 20, m);
		last_interval = daly(5, m);
	}
	assert_true(wall(1e6, 50, 5, 30, 1e4) > wall(1e6, 50, 5, 20, 1e4));
	assert_true(wall(1e6, 50, 6, 20, 1e4) > wall(1e6, 50, 5, 20, 1e4));
}

static void first_order_is_the_limit_of_rare_failures(void **state)
{
	double waste, work = 1e12;

	assert_int_equal(model_first_order_waste(2000, 20, 60, 1e7, &waste, NULL), HALE_OK);
	assert_near(wall(work, 2000, 20, 60, 1e7) / work - 1, waste, 3e-6);
}

static void values_out_of_range_are_named(void **state)
{
	struct error err;
	double v = 7;

	assert_int_equal(model_young_s(-1, 10, &v, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "checkpoint time"));
	assert_int_equal(model_daly_s(1, 0, &v, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "mean time between failures"));
	assert_int_equal(model_daly_s(NAN, 10, &v, &err), HALE_ERR_ARGUMENT);
	assert_int_equal(model_daly_wall_s(10, 20, 1, 1, 100, &v, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "longer than the work"));
	assert_int_equal(model_system_mtbf_s(10, 0, &v, &err), HALE_ERR_ARGUMENT);
	assert_near(v, 7, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(worked_examples),
	    cmocka_unit_test(without_cost_or_failures_the_limits_hold),
	    cmocka_unit_test(the_best_interval_is_where_the_wall_time_is_least),
	    cmocka_unit_test(hopeless_jobs_take_for_ever),
	    cmocka_unit_test(more_failures_never_help),
	    cmocka_unit_test(first_order_is_the_limit_of_rare_failures),
	    cmocka_unit_test(values_out_of_range_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
