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

#include "model/published.h"

#define YEAR_S (365.25 * 86400)
#define HOUR_S 3600.0

static void assert_near(double a, double b, double tolerance)
{
	if (!(fabs(a - b) <= tolerance))
		fail_msg("%.12g is not %.12g +- %g", a, b, tolerance);
}

static struct model_unified_result solve(struct model_unified in)
{
	struct model_unified_result r;
	struct error err = {0};

	if (model_unified(&in, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static void coverage_stretches_the_interval(void **state)
{
	for (double coverage = 0; coverage < 0.95; coverage += 0.1) {
		struct model_unified in = {.ckpt_s = 40,
					   .restart_s = 60,
					   .due_rate_hz = 1 / (6 * HOUR_S),
					   .coverage = coverage};
		struct model_unified_result r = solve(in);
		double young;

		assert_int_equal(model_young_s(40, 6 * HOUR_S, &young, NULL), HALE_OK);
		assert_near(r.system_interval_s, young, 1e-9);
		/* eq. 18 */
		assert_near(r.unified_interval_s, sqrt(1 / (1 - coverage)) * young, 1e-8);
		/* eq. 19 and eq. 20 are the same */
		assert_near(r.score, r.system_waste - r.unified_waste, 1e-15);
	}
}

static void its_limits_hold(void **state)
{
	struct model_unified in = {.ckpt_s = 40, .restart_s = 60, .work_s = 1000};
	struct model_unified_result r = solve(in);

	assert_true(isinf(r.system_interval_s)); /* no failures, no checkpoints */
	assert_near(r.system_total_s, 1000, 0);
	assert_near(r.score, 0, 0);
	in.due_rate_hz = 1e-3;
	in.coverage = 1;
	in.task_waste = 0.01;
	r = solve(in);
	assert_true(isinf(r.unified_interval_s));
	assert_near(r.unified_waste, 0.01, 0);
	assert_near(r.unified_total_s, 1000 / 0.99, 1e-9);
	in.due_rate_hz = 1; /* fails faster than it saves */
	assert_true(isinf(solve(in).system_total_s));
	in.ckpt_s = 0;
	assert_near(solve(in).system_interval_s, 0, 0);
}

/* Figure 9's text: nbody and himeno almost always gain, mxm from about 10^-3 Hz on. */
static void benchmarks_gain_where_the_figure_says(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(benchmarks); i++) {
		struct model_unified in = {.ckpt_s = benchmarks[i].ckpt_s,
					   .coverage = benchmarks[i].coverage,
					   .task_waste = benchmarks[i].task_waste,
					   .due_rate_hz = 1e-3};
		double even = solve(in).break_even_hz, last = -1;

		if (i == 0)
			assert_true(even > 5e-4 && even < 1e-3);
		else
			assert_true(even < 1e-5);
		in.due_rate_hz = even;
		assert_near(solve(in).score, 0, 1e-12);
		for (in.due_rate_hz = 1e-7; in.due_rate_hz < 1e-1; in.due_rate_hz *= 2) {
			double score = solve(in).score;

			assert_true(score > last);
			assert_true((score > 0) == (in.due_rate_hz > even));
			last = score;
		}
	}
}

/* "Increasing (linearly) with the failure rate" holds for the restarts' part only: with r_s = 0
 * four times the rate is twice the gain. */
static void the_score_grows_like_the_root_of_the_rate(void **state)
{
	struct model_unified in = {.ckpt_s = 45.79, .coverage = 0.86, .due_rate_hz = 1e-5};
	double once = solve(in).score;

	in.due_rate_hz = 4e-5;
	assert_near(solve(in).score / once, 2, 1e-12);
}

static void sensitivities_are_the_slopes(void **state)
{
	struct model_unified in = {40, 60, 1e-4, 0.86, 0.01, 0};
	struct model_unified_sensitivity s;
	double *parameter[] = {&in.ckpt_s, &in.restart_s, &in.due_rate_hz, &in.coverage,
			       &in.task_waste};
	double *slope[] = {&s.ckpt, &s.restart, &s.due_rate, &s.coverage, &s.task_waste};

	assert_int_equal(model_unified_sensitivity(&in, &s, NULL), HALE_OK);
	for (size_t i = 0; i < ARRAY_LEN(slope); i++) {
		double was = *parameter[i], h = 1e-5, up, down;

		*parameter[i] = was * (1 + h);
		up = solve(in).score;
		*parameter[i] = was * (1 - h);
		down = solve(in).score;
		*parameter[i] = was;
		assert_near(*slope[i], (up - down) / (2 * h), 1e-8);
	}
}

static void task_rates_add_up(void **state)
{
	struct model_task_level t = {
	    .overlap = 0.5, .ckpt = 0.01, .rework = 20, .no_send = 5, .restart = 1, .log = 0.02};
	double w;
	struct error err;

	assert_int_equal(model_task_waste(&t, 1e-3, &w, NULL), HALE_OK);
	assert_near(w, 0.5 * (0.01 + 1e-3 * (15 + 1) + 0.02), 1e-15);
	t.overlap = 0;
	assert_int_equal(model_task_waste(&t, 1e-3, &w, NULL), HALE_OK);
	assert_near(w, 0, 0);
	t = (struct model_task_level){.overlap = 1, .ckpt = 1};
	assert_int_equal(model_task_waste(&t, 0, &w, NULL), HALE_OK); /* all of the time */
	assert_near(w, 1, 0);
	t.log = 1e-6;
	assert_int_equal(model_task_waste(&t, 0, &w, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "more than all of it"));
	t.overlap = 2;
	assert_int_equal(model_task_waste(&t, 1e-3, &w, &err), HALE_ERR_ARGUMENT);
	t = (struct model_task_level){.overlap = 1, .rework = 20, .no_send = 30};
	assert_int_equal(model_task_waste(&t, 1e-3, &w, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "not repeated"));
}

static struct model_played play(double ckpt_s, double coverage, double shape, uint32_t runs)
{
	struct model_unified in = {.ckpt_s = ckpt_s,
				   .restart_s = 60,
				   .due_rate_hz = 1 / (6 * HOUR_S),
				   .coverage = coverage,
				   .work_s = 1e6};
	struct model_played p;
	struct error err = {0};

	if (model_unified_play(&in, 0, shape, runs, 1, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

/* Figure 8, left: below 0.7 %, growing with the checkpoint time. */
static void the_formula_is_near_10000_runs_for_any_checkpoint_time(void **state)
{
	double last = 0;

	for (double ckpt_s = 20; ckpt_s <= 160; ckpt_s *= 2) {
		struct model_played p = play(ckpt_s, 0, 1, 10000);

		assert_true(fabs(p.difference) < 0.007);
		assert_true(fabs(p.difference) > last);
		last = fabs(p.difference);
	}
}

/* Figure 8, right: below 0.35 %, falling with the coverage. */
static void the_formula_is_near_10000_runs_for_any_coverage(void **state)
{
	double last = 1;

	for (double coverage = 0; coverage < 0.9; coverage += 0.2) {
		struct model_played p = play(90, coverage, 1, 10000);

		assert_true(fabs(p.difference) < 0.0035);
		assert_true(fabs(p.difference) < last);
		last = fabs(p.difference);
	}
}

/* Without failures a run takes its work and its checkpoints, to the second; and Daly's exact wall
 * time lies within the confidence interval of the runs. */
static void what_is_played_is_right_where_it_is_known(void **state)
{
	struct model_unified in = {100, 60, 1e-30, 0, 0, 1000};
	struct model_played p;
	double wall, mtbf_s = 6 * HOUR_S;

	assert_int_equal(model_unified_play(&in, 300, 1, 10, 1, &p, NULL), HALE_OK);
	assert_near(p.mean_s, 1300, 1e-9); /* pieces 300 300 300 100 */
	in = (struct model_unified){160, 0, 1 / mtbf_s, 0, 0, 1e6};
	assert_int_equal(model_unified_play(&in, 2500, 1, 20000, 3, &p, NULL), HALE_OK);
	/* 399 pieces with a checkpoint, one without */
	wall = mtbf_s * (399 * expm1(2660 / mtbf_s) + expm1(2500 / mtbf_s));
	assert_near(p.mean_s, wall, 1.7 * p.half_width_s); /* 99.9 % */
}

static void the_same_seed_gives_the_same_runs(void **state)
{
	struct model_played a = play(40, 0.5, 0.7, 100), b = play(40, 0.5, 0.7, 100);

	assert_memory_equal(&a, &b, sizeof(a));
}

static void hopeless_jobs_are_refused(void **state)
{
	struct model_unified in = {100, 100, 0.1, 0, 0, 1e6};
	struct model_played p;
	struct error err;

	assert_int_equal(model_unified_play(&in, 10, 1, 10, 1, &p, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "never finishes"));
	in.coverage = 1.5;
	assert_int_equal(model_unified_play(&in, 10, 1, 10, 1, &p, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "coverage"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(coverage_stretches_the_interval),
	    cmocka_unit_test(its_limits_hold),
	    cmocka_unit_test(benchmarks_gain_where_the_figure_says),
	    cmocka_unit_test(the_score_grows_like_the_root_of_the_rate),
	    cmocka_unit_test(sensitivities_are_the_slopes),
	    cmocka_unit_test(task_rates_add_up),
	    cmocka_unit_test(the_formula_is_near_10000_runs_for_any_checkpoint_time),
	    cmocka_unit_test(the_formula_is_near_10000_runs_for_any_coverage),
	    cmocka_unit_test(what_is_played_is_right_where_it_is_known),
	    cmocka_unit_test(the_same_seed_gives_the_same_runs),
	    cmocka_unit_test(hopeless_jobs_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
