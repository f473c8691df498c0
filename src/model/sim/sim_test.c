/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator against the closed formulas. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/base.h"
#include "model/interval.h"
#include "model/redundancy.h"
#include "model/shadow.h"
#include "model/sim/sim_fixture.h"
#include "model/unified.h"

#define YEAR (365.25 * 86400)

/* ---- failures ---- */

/* Kolmogorov and Smirnov's distance of a sample from a law, times the root of its size: above 1.95
 * in one of a thousand samples. */
static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double distance(double *x, size_t n, const struct model_law *law, double age_s)
{
	double most = 0, before = model_law_survival(law, age_s);

	qsort(x, n, sizeof(*x), ascending);
	for (size_t i = 0; i < n; i++) {
		double f = 1 - model_law_survival(law, age_s + x[i]) / before;
		most = fmax(most, fmax(fabs(f - (double)i / n), fabs(f - (i + 1.0) / n)));
	}
	return most * sqrt((double)n);
}

static void first_lives_follow_the_law(void **state)
{
	enum { N = 20000 };
	static const struct sim_failures laws[] = {{.law = {100, 1}},
						   {.law = {100, 0.7}},
						   {.law = {100, 2.5}},
						   {.law = {100, 0.7}, .age_s = 30},
						   {.law = {100, 2.5}, .age_s = 80}};
	double *times = test_malloc(N * sizeof(*times));

	for (size_t l = 0; l < ARRAY_LEN(laws); l++) {
		struct sim_source s;
		struct sim_strike strike;
		size_t n = 0;
		assert_true(sim_source_init(&s, &laws[l], N, INFINITY));
		sim_source_start(&s, 5, 0);
		while (n < N) /* nobody is renewed: each slot fails once */
			if (sim_source_take(&s, &strike))
				times[n++] = strike.time_s;
		double d = distance(times, N, &laws[l].law, laws[l].age_s);
		if (d > 1.95)
			fail_msg("law %zu is missed by %.3g", l, d);
		sim_source_fini(&s);
	}
	test_free(times);
}

static void later_lives_follow_the_law(void **state)
{
	enum { SLOTS = 50, N = 20000 };
	static const struct sim_failures laws[] = {
	    {.law = {100, 1}}, {.law = {100, 0.7}}, {.law = {100, 2.5}}};
	double *gaps = test_malloc(N * sizeof(*gaps));

	for (size_t l = 0; l < ARRAY_LEN(laws); l++) {
		struct sim_source s;
		struct sim_strike strike;
		double born[SLOTS] = {0};
		size_t n = 0;
		assert_true(sim_source_init(&s, &laws[l], SLOTS, INFINITY));
		sim_source_start(&s, 6, 0);
		while (n < N) {
			if (!sim_source_take(&s, &strike))
				continue;
			gaps[n++] = strike.time_s - born[strike.slot];
			born[strike.slot] = strike.time_s;
			sim_source_renew(&s, strike.slot, strike.time_s);
		}
		double d = distance(gaps, N, &laws[l].law, 0);
		if (d > 1.95)
			fail_msg("law %zu is missed by %.3g", l, d);
		sim_source_fini(&s);
	}
	test_free(gaps);
}

static void failures_of_all_nodes_are_a_poisson_process(void **state)
{
	struct sim_plan p = plan_of(10000, 30 * 86400, "exp:mttf=5y", "2x+clone:time=0", 2000);
	struct sim_summary s = run(&p);
	double mean = 20000 / (5 * YEAR) * 30 * 86400;

	expect_near(mean, s.mean[SIM_FAILURES], 4 * sqrt(mean / 2000), "failures");
}

/* ---- checkpoints ---- */

/* Daly's model, piece by piece: none after the last. */
static double daly_sum(double work, double tau, double ckpt, double restart, double m)
{
	double pieces = ceil(work / tau) - 1;
	double last = work - pieces * tau;

	return m * exp(restart / m) * (pieces * expm1((tau + ckpt) / m) + expm1(last / m));
}

static void checkpoints_take_what_daly_says(void **state)
{
	struct sim_plan p = plan_of(1000, 256 * 3600, "exp:mttf=1y",
				    "ckpt:cost=5min,every=40min,restart=10min", 2000);
	struct sim_summary s = run(&p);
	double m = YEAR / 1000, daly;

	expect_wall(daly_sum(256 * 3600, 2400, 300, 600, m), &s);
	assert_int_equal(model_daly_wall_s(256 * 3600, 2400, 300, 600, m, &daly, NULL), HALE_OK);
	expect_near(daly, s.mean[SIM_WALL_S], 2 * (s.high_s - s.low_s), "Daly's wall time");
}

static void the_automatic_interval_is_daly_s_and_is_best(void **state)
{
	struct sim_plan p = plan_of(1000, 100 * 3600, "exp:mttf=2y", "ckpt:cost=1min", 1000);
	struct sim_summary best = run(&p);
	double m = 2 * YEAR / 1000, daly;

	assert_int_equal(model_daly_s(60, m, &daly, NULL), HALE_OK);
	expect_near(daly, best.every_s[POLICY_SHARED], daly * 1e-9, "interval");
	for (double factor = 0.4; factor < 3; factor *= 6) {
		p.scheme.level[POLICY_SHARED].every_s = daly * factor;
		struct sim_summary other = run(&p);
		assert_true(other.low_s > best.high_s);
	}
}

/* Each level is taken as often as the failures that need it call for. */
static void automatic_intervals_of_levels_follow_what_they_mend(void **state)
{
	struct sim_plan p =
	    plan_of(1000, 100 * 3600, "exp:mttf=1y,soft=75%", "L1:cost=10s+ckpt:cost=1min", 400);
	struct sim_summary two = run(&p);
	double m = YEAR / 1000, local, shared;

	assert_int_equal(model_daly_s(10, m / 0.75, &local, NULL), HALE_OK);
	assert_int_equal(model_daly_s(60, m / 0.25, &shared, NULL), HALE_OK);
	expect_near(local, two.every_s[POLICY_LOCAL], local * 1e-9, "L1");
	expect_near(shared, two.every_s[POLICY_SHARED], shared * 1e-9, "L4");
	p = plan_of(1000, 100 * 3600, "exp:mttf=1y,soft=75%", "ckpt:cost=1min", 400);
	struct sim_summary one = run(&p);
	assert_true(two.high_s < one.low_s);
	p = plan_of(1000, 100 * 3600, "exp:mttf=1y", "L1:cost=10s+ckpt:cost=1min", 10);
	two = run(&p); /* L1 mends nothing: it is never taken */
	expect_near(p.job.work_s, two.every_s[POLICY_LOCAL], 1e-6, "L1");
	/* two replicas, and nodes that get better: the interval is a good one, still */
	p = plan_of(20000, 100 * 3600, "weibull:shape=0.7,mttf=5y,age=1y", "2x+ckpt:cost=5min",
		    1000);
	struct sim_summary best = run(&p);
	double chosen = best.every_s[POLICY_SHARED];
	for (double factor = 0.25; factor < 5; factor *= 16) {
		p.scheme.level[POLICY_SHARED].every_s = chosen * factor;
		struct sim_summary other = run(&p);
		assert_true(other.mean[SIM_WALL_S] > best.mean[SIM_WALL_S]);
	}
}

static void coverage_by_tasks_takes_what_the_unified_model_says(void **state)
{
	struct model_unified m = {.ckpt_s = 60,
				  .restart_s = 60,
				  .due_rate_hz = 1.0 / 43200,
				  .coverage = 0.86,
				  .task_waste = 0.01,
				  .work_s = 256 * 3600};
	struct model_unified_result r;
	struct sim_plan p =
	    plan_of(1, m.work_s, "exp:mttf=12h,soft=100%",
		    "task:coverage=86%,waste=1%+ckpt:cost=1min,restart=1min,every=1h", 10000);

	assert_int_equal(model_unified(&m, &r, NULL), HALE_OK);
	p.scheme.level[POLICY_SHARED].every_s = r.unified_interval_s;
	struct sim_summary s = run(&p);
	expect_wall(daly_sum(m.work_s / 0.99, r.unified_interval_s, 60, 60, 43200 / 0.14), &s);
	/* the closed form is of first order; 0.7 % at most was published */
	expect_near(r.unified_total_s, s.mean[SIM_WALL_S], 0.007 * r.unified_total_s,
		    "unified model");
	expect_near(0.86, s.mean[SIM_COVERED] / s.mean[SIM_FAILURES], 0.01, "coverage");
}

/* ---- redundancy ---- */

/* A job that may not take longer than its work finishes if no rank is lost. */
static void replicas_survive_as_they_should(void **state)
{
	static const struct {
		const char *scheme;
		double whole, more; /* replicas that all ranks have; share with one more */
	} cases[] = {{"2x", 2, 0},
		     {"3x", 3, 0},
		     {"1.5x", 1, 0.5},
		     {"partial:fraction=20%", 1, 0.2},
		     {"2.5x", 2, 0.5}};
	static const char *const failures[] = {"exp:mttf=2y", "weibull:shape=0.7,mttf=3y",
					       "weibull:shape=2,mttf=1y"};

	for (size_t c = 0; c < ARRAY_LEN(cases); c++)
		for (size_t f = 0; f < ARRAY_LEN(failures); f++) {
			double whole = cases[c].whole, more = cases[c].more;
			double n = whole == 1 ? 20 : whole == 2 ? 200 : 1000;
			struct sim_plan p =
			    plan_of(n, 20 * 86400, failures[f], cases[c].scheme, 4000);
			p.limit = 1.000001; /* but for rounding */
			struct sim_summary s = run(&p);
			double lost = model_law_failed(&p.failures.law, p.job.work_s);
			expect_share(pow(1 - pow(lost, whole), n * (1 - more)) *
					 pow(1 - pow(lost, whole + 1), n * more),
				     &s);
		}
}

/* All ranks have all replicas at the beginning of each attempt: a renewal argument gives the mean
 * time, the integral of the survival function over its value at the end. */
static void replicas_without_cloning_take_what_renewal_says(void **state)
{
	struct sim_plan p = plan_of(5000, 100 * 3600, "exp:mttf=3y", "2x", 4000);
	double sum = 0, t = p.job.work_s, last = 1;
	enum { STEPS = 20000 };

	p.job.launch_s = 0;
	for (int i = 1; i <= STEPS; i++) {
		double lost = -expm1(-t * i / STEPS / (3 * YEAR));
		double now = pow(1 - lost * lost, 5000);
		sum += (last + now) / 2 * t / STEPS;
		last = now;
	}
	struct sim_summary s = run(&p);
	expect_wall(sum / last, &s);
}

static void cloning_takes_what_eq_3_7_says(void **state)
{
	struct model_redundancy m = {.work_s = 256 * 3600,
				     .nodes = 200000,
				     .degree = 2,
				     .beta = 0.2,
				     .node_mttf_s = 50 * YEAR,
				     .clone_s = 120,
				     .relaunch_s = 120,
				     .repair_s = INFINITY,
				     .cloning = true};
	struct model_redundancy_result r;
	struct sim_plan p = plan_of(200000, m.work_s, "exp:mttf=50y", "2x+clone:time=2min", 1000);

	assert_int_equal(model_redundancy(&m, &r, NULL), HALE_OK);
	p.job.beta = 0.2;
	struct sim_summary s = run(&p);
	expect_wall(r.total_s, &s);
	expect_near(r.failures, s.mean[SIM_FAILURES], 4 * sqrt(r.failures / 1000), "failures");

	/* all at the same time: the job stands while there is one, as long as servers of M/G/inf
	 * are busy, and works e^-rho of the time */
	p = plan_of(200000, m.work_s, "exp:mttf=5y", "2x+clone:time=2min,at-once=any", 1000);
	s = run(&p);
	expect_wall(m.work_s * exp(400000 / (5 * YEAR) * 120), &s);
}

/* 000 table 3.4: 74 nodes for 64,000 ranks, beta 0.2 and cloning in 10 minutes. */
static void spares_are_those_of_table_3_4(void **state)
{
	struct sim_plan p = plan_of(64000, 200 * 3600, "exp:mttf=50y", "2x+clone:time=10min", 1000);

	p.job.beta = 0.2;
	struct sim_summary s = run(&p);
	double failures = 240 * 3600 / (1 - 128000 / (50 * YEAR) * 600) * 128000 / (50 * YEAR);
	expect_near(failures, s.mean[SIM_SPARES], 4 * sqrt(failures / 1000), "spares");
	assert_int_equal(lround(s.mean[SIM_SPARES]), 74);
}

/* ---- shadows ---- */

static void shadows_take_the_time_and_energy_of_the_closed_form(void **state)
{
	static const double pairs[] = {1, 40};

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		struct model_shadow m = {.law = {30 * 86400, 1},
					 .work_s = 6 * 86400,
					 .pairs = pairs[i],
					 .main_speed = 1,
					 .shadow_speed = 0.4,
					 .after_speed = 1,
					 .static_part = 0.6,
					 .exponent = 3,
					 .socket_w = 200};
		struct model_shadow_result r;
		struct sim_plan p = plan_of(pairs[i], m.work_s, "exp:mttf=30d",
					    "shadow:speed=0.4,meet=end,fail=no", 20000);
		assert_int_equal(model_shadow(&m, &r, NULL), HALE_OK);
		struct sim_summary s = run(&p);
		expect_wall(r.expected_time_s, &s);
		expect_near(r.expected_energy_j, s.mean[SIM_ENERGY_J],
			    s.energy_high_j - s.energy_low_j, "energy");
	}
}

/* A set of four mains and a core survives one loss. */
static void shadowed_sets_survive_one_failure(void **state)
{
	struct sim_plan p =
	    plan_of(100, 10 * 86400, "exp:mttf=1y", "shadow:set=4,log=1TB,rate=1GB/s", 10000);
	double q = exp(-10 / 365.25), alone = pow(q, 5) + 5 * (1 - q) * pow(q, 4);

	p.limit = 2;
	p.job.launch_s = 100 * 86400; /* who starts again is too late */
	struct sim_summary s = run(&p);
	expect_share(pow(alone, 25), &s);
}
int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(first_lives_follow_the_law),
	    cmocka_unit_test(later_lives_follow_the_law),
	    cmocka_unit_test(failures_of_all_nodes_are_a_poisson_process),
	    cmocka_unit_test(checkpoints_take_what_daly_says),
	    cmocka_unit_test(the_automatic_interval_is_daly_s_and_is_best),
	    cmocka_unit_test(automatic_intervals_of_levels_follow_what_they_mend),
	    cmocka_unit_test(coverage_by_tasks_takes_what_the_unified_model_says),
	    cmocka_unit_test(replicas_survive_as_they_should),
	    cmocka_unit_test(replicas_without_cloning_take_what_renewal_says),
	    cmocka_unit_test(cloning_takes_what_eq_3_7_says),
	    cmocka_unit_test(spares_are_those_of_table_3_4),
	    cmocka_unit_test(shadows_take_the_time_and_energy_of_the_closed_form),
	    cmocka_unit_test(shadowed_sets_survive_one_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
