/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator against the closed formulas, and against runs worked out by hand from traces.
 * Everything random has a fixed seed, so that each comparison always comes out the same; formulas
 * must lie within four standard errors of the simulated mean. */
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
#include "model/sim_world.h"
#include "model/unified.h"

#define YEAR (365.25 * 86400)

static struct sim_plan plan_of(double nodes, double work_s, const char *failures,
			       const char *scheme, uint32_t runs)
{
	struct sim_plan p;
	struct error err = {0};
	char *file;

	sim_plan_init(&p);
	p.job.nodes = nodes;
	p.job.work_s = work_s;
	p.runs = runs;
	if (sim_failures_parse(failures, &p.failures, &file, &err) != HALE_OK ||
	    sim_scheme_parse(scheme, &p.scheme, &err) != HALE_OK)
		fail_msg("%s", err.text);
	free(file);
	return p;
}

static struct sim_summary run(const struct sim_plan *p)
{
	struct sim_summary s;
	struct error err = {0};

	if (sim_run(p, &s, NULL, NULL, &err) != HALE_OK)
		fail_msg("%s", err.text);
	return s;
}

static void expect_near(double value, double mean, double error, const char *what)
{
	if (!(fabs(value - mean) <= error))
		fail_msg("%s: %.10g expected, %.10g +- %.3g simulated", what, value, mean, error);
}

/* The wall time that a formula says. The interval is one of 1.96 standard errors. */
static void expect_wall(double formula_s, const struct sim_summary *s)
{
	assert_int_equal(s->finished, s->runs);
	expect_near(formula_s, s->mean[SIM_WALL_S], (s->high_s - s->low_s), "wall time");
}

static void expect_share(double probability, const struct sim_summary *s)
{
	double n = s->runs;

	expect_near(probability, s->finished / n, 4 * sqrt(probability * (1 - probability) / n),
		    "share of runs");
}

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

/* ---- by hand ---- */

static struct sim_summary by_hand(double nodes, double work_s, const char *scheme,
				  const char *trace)
{
	struct sim_plan p = plan_of(nodes, work_s, "trace:x", scheme, 1);
	struct error err = {0};

	if (sim_trace_parse(trace, strlen(trace), &p.failures.trace, &err) != HALE_OK)
		fail_msg("%s", err.text);
	struct sim_summary s = run(&p);
	sim_plan_fini(&p);
	return s;
}

#define EXPECT(what, value) expect_near(value, s.mean[what], 1e-6, #what)

static void levels_survive_what_they_should(void **state)
{
	const char *shared = "ckpt:every=1000,cost=10,restart=50";
	struct sim_summary s = by_hand(4, 10000, shared, "1500 2\n");
	EXPECT(SIM_REWORK_S, 490);
	EXPECT(SIM_WALL_S, 10000 + 9 * 10 + 490 + 50);
	s = by_hand(4, 10000, shared, "1005 2\n"); /* the one being taken is lost */
	EXPECT(SIM_CKPT_S, 5 + 9 * 10);
	EXPECT(SIM_WALL_S, 10000 + 9 * 10 + 5 + 1000 + 120);

	const char *two = "L1:every=100,cost=1,restart=5+ckpt:every=1000,cost=10,restart=50";
	s = by_hand(4, 10000, two, "550 0 soft\n");
	EXPECT(SIM_WALL_S, 10000 + 9 * 10 + 90 * 1 + 45 + 5);
	s = by_hand(4, 10000, two, "550 0 hard\n");
	EXPECT(SIM_WALL_S, 10000 + 9 * 10 + 95 * 1 + 545 + 120);

	const char *partner = "L2:every=1000,cost=10,restart=100";
	s = by_hand(8, 10000, partner, "1500 1\n1550 3\n");
	EXPECT(SIM_WALL_S, 10000 + 9 * 10 + 490 + 50 + 100);
	s = by_hand(8, 10000, partner, "1500 1\n1550 2\n"); /* neighbours */
	EXPECT(SIM_WALL_S, 10000 + 10 * 10 + 490 + 50 + 1000 + 120);
	s = by_hand(8, 10000, partner, "1500 1\n2900 2\n"); /* one after the other */
	EXPECT(SIM_RESTARTS, 2);
	EXPECT(SIM_WALL_S, 10000 + 9 * 10 + 490 + 100 + (2900 - 1600 - 10 - 1000 + 0) + 100 + 0);
}

static void clones_restore_redundancy(void **state)
{
	/* ranks 0..3 on nodes 0..3 and 4..7 */
	struct sim_summary s = by_hand(4, 10000, "2x+clone:time=100", "1000 1\n2000 5\n3000 1\n");
	EXPECT(SIM_WALL_S, 10300);
	EXPECT(SIM_CLONES, 3);
	s = by_hand(4, 10000, "2x+clone:time=100", "1000 1\n1050 5\n"); /* its source dies */
	EXPECT(SIM_RESTARTS, 1);
	EXPECT(SIM_WALL_S, 50 + 1000 + 120 + 10000);
	s = by_hand(4, 10000, "2x+clone:time=100", "1000 1\n1050 6\n"); /* one after the other */
	EXPECT(SIM_WALL_S, 10200);
	s = by_hand(4, 10000, "2x+clone:time=100,at-once=2", "1000 1\n1050 6\n");
	EXPECT(SIM_WALL_S, 10150);
	s = by_hand(4, 10000, "2x+clone:time=100,pause=10", "1000 1\n1050 6\n");
	EXPECT(SIM_WALL_S, 10020);
	s = by_hand(4, 10000, "2x", "1000 1\n2000 6\n3000 1\n"); /* node 1 is not there any more */
	EXPECT(SIM_WALL_S, 10000);
	EXPECT(SIM_FAILURES, 2);
	s = by_hand(4, 10000, "3x+clone:time=100", "1000 1\n1010 5\n1020 9\n");
	EXPECT(SIM_RESTARTS, 1);
}

static void spare_nodes_run_out_and_are_repaired(void **state)
{
	struct sim_summary s =
	    by_hand(4, 10000, "spares:count=1,repair=5000", "1000 0\n2000 1\n3000 2\n");
	/* 1000: spare taken, start again to 1120; 2000: wait until 6000; 3000: it is down, too,
	 * and 7,000 + 1,000 is when the third is back */
	EXPECT(SIM_WAIT_S, 8000 - 2000 - 1000 + 0);
	EXPECT(SIM_SPARES, 3);
	s = by_hand(4, 10000, "spares:count=1", "1000 0\n2000 1\n");
	assert_true(s.hopeless);
	s = by_hand(4, 10000, "spares:count=0", "1000 0 soft\n");
	EXPECT(SIM_WALL_S, 11120);
	s = by_hand(4, 10000, "2x+clone:time=100+spares:count=1,repair=3000",
		    "1000 0\n1500 1\n4050 4\n");
	/* the second is cloned from 4000, when the first is repaired; 4050: rank 0's new node has
	 * been there since 1100, so losing its twin is no loss */
	EXPECT(SIM_RESTARTS, 0);
	EXPECT(SIM_CLONES, 3);
	EXPECT(SIM_WALL_S, 10300);
}

static void shadows_catch_up_and_jump(void **state)
{
	/* mains 0..3, cores 4 and 5: sets {0, 1, 4} and {2, 3, 5} */
	struct sim_summary s = by_hand(4, 10000, "shadow:set=2", "1000 0\n3000 2\n");
	EXPECT(SIM_STALL_S, 500 + 750); /* level at 1,000; 2,500 done at 3,000 */
	EXPECT(SIM_PROMOTIONS, 2);
	s = by_hand(4, 10000, "shadow:set=2,jump=none", "1000 0\n3000 2\n");
	EXPECT(SIM_STALL_S, 500 + (250 + 750)); /* 250 came nearer while waiting */
	s = by_hand(4, 10000, "shadow:set=2", "1000 0\n3000 1\n");
	EXPECT(SIM_WALL_S, 10000 + 500 + 2500 + 120);
	s = by_hand(4, 10000, "shadow:set=2", "1000 4\n"); /* only shadows lost */
	EXPECT(SIM_WALL_S, 10000);
	s = by_hand(4, 10000, "shadow:set=2,rejuvenate=1,rejuvenation=60", "1000 0\n3000 1\n");
	EXPECT(SIM_RESTARTS, 0);
	EXPECT(SIM_STALL_S, 500 + 60 + (3000 - 1560) / 2.0 + 60);
	/* 0.75 * 1,000,000 bytes at 1,000 bytes a second, half of which the shadows eat */
	s = by_hand(4, 10000, "shadow:set=2,log=1MB,rate=1kB/s,jump=20", "2000 0\n");
	EXPECT(SIM_JUMPS, 6);
	EXPECT(SIM_STALL_S, 6 * 20 + (2000 - 20 - 1500) / 2.0);
	s = by_hand(4, 10000, "shadow:set=2,pressure=1.5", "1000 0\n");
	EXPECT(SIM_STALL_S, 1000 * (1 - pow(2, -1.5)));
	s = by_hand(4, 10000, "shadow:set=2+ckpt:every=1000,cost=10,restart=50", "500 0\n2100 1\n");
	EXPECT(SIM_RESTARTS, 1); /* from 1,000; 2,100 - 250 - 10 - 1,000 lost */
	EXPECT(SIM_WALL_S, 10000 + 90 + 250 + (2100 - 260 - 1000) + 50);
}

/* ---- the whole ---- */

static void parts_make_up_the_wall_time(void **state)
{
	static const char *const schemes[] = {
	    "none",
	    "L1:every=1h+L2:every=4h+ckpt",
	    "2x+ckpt",
	    "2x+clone:pause=10s+ckpt",
	    "1.5x+clone+L2:cost=10s,every=2h+ckpt",
	    "3x+clone:at-once=any",
	    "shadow:set=4,rejuvenate=3,rejuvenation=5min+ckpt",
	    "shadow:speed=0.3,jump=none",
	    "2x+clone+task:coverage=50%,rework=30,waste=1%+spares:count=30,repair=2d+ckpt"};

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		struct sim_plan p =
		    plan_of(60, 20 * 86400, "weibull:shape=0.7,mttf=1y,soft=40%", schemes[i], 200);
		p.job.beta = 0.1;
		struct sim_summary s = run(&p);
		double sum = 0;
		for (int f = SIM_WORK_S; f <= SIM_WAIT_S; f++) {
			assert_true(s.mean[f] >= 0);
			sum += s.mean[f];
		}
		assert_true(s.finished > 0 && s.mean[SIM_FAILURES] > 1);
		expect_near(sum, s.mean[SIM_WALL_S], 1e-3, schemes[i]);
		assert_true(s.mean[SIM_WORK_S] >= p.job.work_s);
	}
}

static void threads_change_no_bit(void **state)
{
	struct sim_plan p = plan_of(3000, 10 * 86400, "weibull:shape=0.7,mttf=5y,soft=20%",
				    "2x+clone+task+ckpt", 333);
	struct sim_summary one = run(&p), other;

	for (uint32_t threads = 2; threads <= 7; threads += 5) {
		p.threads = threads;
		other = run(&p);
		other.events_per_s = one.events_per_s;
		assert_memory_equal(&one, &other, sizeof(one));
	}
	p.seed++;
	other = run(&p);
	assert_true(other.mean[SIM_WALL_S] != one.mean[SIM_WALL_S]);
}

static void a_recorded_run_plays_back(void **state)
{
	struct sim_plan p =
	    plan_of(500, 30 * 86400, "weibull:shape=0.7,mttf=2y,soft=30%", "2x+clone+ckpt", 1);
	struct sim_record record = {0};
	struct sim_summary first, again;

	assert_int_equal(sim_run(&p, &first, NULL, &record, NULL), HALE_OK);
	assert_true(record.count > 50);
	p.failures = (struct sim_failures){.traced = true};
	p.failures.trace = (struct sim_trace){record.events, record.count, 1e9};
	p.scheme.level[POLICY_SHARED].every_s = first.every_s[POLICY_SHARED];
	assert_int_equal(sim_run(&p, &again, NULL, NULL, NULL), HALE_OK);
	assert_memory_equal(first.mean, again.mean, sizeof(first.mean));
	/* entered at random, it gives as many failures in the long run */
	p.failures.trace.span_s = first.mean[SIM_WALL_S];
	p.failures.random_start = true;
	p.runs = 50;
	assert_int_equal(sim_run(&p, &again, NULL, NULL, NULL), HALE_OK);
	assert_true(again.deviation_s > 0 && again.outlived == 0);
	free(record.events);
}

static void what_never_finishes_is_seen(void **state)
{
	struct sim_plan p = plan_of(1000000, 30 * 86400, "exp:mttf=5y", "none", 1000);
	p.limit = 5;
	struct sim_summary s = run(&p);
	assert_true(s.hopeless);
	assert_int_equal(s.finished, 0);
	/* lambda n r t_clone = 1.9 */
	p = plan_of(1000000, 86400, "exp:mttf=2y", "2x+clone:time=1min", 1000);
	p.limit = 10;
	s = run(&p);
	assert_true(s.hopeless);
	/* some do: a node without a spare survives with probability e^-1 */
	p = plan_of(1, 86400, "exp:mttf=24h", "spares:count=0", 4000);
	s = run(&p);
	assert_false(s.hopeless);
	expect_share(exp(-1), &s);
}

static void policies_decide(void **state)
{
	enum policy_level level;
	double every[] = {100, 0, 1000}, saved[] = {POLICY_NO_WORK, POLICY_NO_WORK, POLICY_NO_WORK};

	assert_true(policy_checkpoint_due(every, saved, &level) == 100 && level == POLICY_LOCAL);
	saved[POLICY_LOCAL] = 900;
	assert_true(policy_checkpoint_due(every, saved, &level) == 1000);
	assert_int_equal(level, POLICY_SHARED);
	assert_int_equal(policy_restore_level(saved, POLICY_LOCAL), POLICY_LOCAL);
	assert_int_equal(policy_restore_level(saved, POLICY_PARTNER), POLICY_BEGINNING);
	saved[POLICY_SHARED] = 1000;
	assert_int_equal(policy_restore_level(saved, POLICY_LOCAL), POLICY_SHARED);
	saved[POLICY_LOCAL] = 1000;
	assert_int_equal(policy_restore_level(saved, POLICY_LOCAL), POLICY_LOCAL);

	struct policy_lost lost[] = {
	    {7, 2, true, false}, {8, 1, true, false}, {9, 2, false, false}};
	assert_int_equal(policy_clone_next(lost, 3, true), 1);
	assert_int_equal(policy_clone_next(lost, 3, false), 2);
	lost[1].in_hand = true;
	assert_int_equal(policy_clone_next(lost, 3, true), 0);
	assert_int_equal(policy_clone_next(lost, 2, false), 2);
	assert_true(policy_are_partners(0, 7, 8) && policy_are_partners(3, 2, 8));
	assert_false(policy_are_partners(1, 3, 8) || policy_are_partners(4, 4, 8));
	assert_true(isinf(policy_jump_due(0, 100, 0.75, 10, 1)));
	assert_false(policy_rejuvenate(100, 0));
}

static void nonsense_is_refused(void **state)
{
	static const char *const schemes[] = {"",
					      "4x",
					      "0.5x",
					      "2x+3x",
					      "clone",
					      "ckpt+L4",
					      "ckpt:cost",
					      "ckpt:cost=never",
					      "ckpt:colour=red",
					      "none:a=b",
					      "2x+shadow",
					      "clone:time=1min,pause=2min+2x",
					      "stripes",
					      "shadow:set=3,speed=0.5",
					      "shadow:jump=none,rejuvenate=3",
					      "shadow:meet=end+ckpt",
					      "shadow:meet=never",
					      "shadow:jump=none,log=1GB",
					      "task:coverage=120%",
					      "2x:fraction=0.5"};
	static const char *const failures[] = {"exp",
					       "exp:",
					       "exp:mttf=0",
					       "weibull:shape=0,mttf=1y",
					       "exp:shape=2,mttf=1y",
					       "often:mttf=1y",
					       "trace:",
					       "trace:x,start=late",
					       "exp:mttf=1y,soft=2"};
	struct sim_scheme scheme;
	struct sim_failures law;
	struct error err;
	char *file;

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		err.text[0] = '\0';
		if (sim_scheme_parse(schemes[i], &scheme, &err) != HALE_ERR_ARGUMENT ||
		    !err.text[0])
			fail_msg("scheme '%s' is taken", schemes[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		err.text[0] = '\0';
		if (sim_failures_parse(failures[i], &law, &file, &err) != HALE_ERR_ARGUMENT ||
		    !err.text[0])
			fail_msg("failures '%s' are taken", failures[i]);
		free(file);
	}
	struct sim_plan p = plan_of(1, 100, "exp:mttf=1y", "L2", 1);
	assert_int_equal(sim_plan_check(&p, &err), HALE_ERR_ARGUMENT); /* no partner */
	p = plan_of(2, 100, "exp:mttf=1y", "task", 1);
	assert_int_equal(sim_plan_check(&p, &err), HALE_ERR_ARGUMENT); /* nothing to cover */
	p = plan_of(2, 100, "exp:mttf=1y", "ckpt:cost=0", 1);
	assert_int_equal(sim_plan_check(&p, &err), HALE_ERR_ARGUMENT); /* no best interval */
}

static void bad_traces_are_refused_with_their_line(void **state)
{
	static const char *const traces[] = {
	    "",	      "# none\n",    "x 1\n",	      "1\n", "1 2 maybe\n",
	    "1 -2\n", "span\n1 2\n", "1 5000000000\n"};
	struct sim_trace t;
	struct error err;

	for (size_t i = 0; i < ARRAY_LEN(traces); i++)
		if (sim_trace_parse(traces[i], strlen(traces[i]), &t, &err) != HALE_ERR_ARGUMENT)
			fail_msg("trace %zu is taken", i);
	const char *good = "# a\n\nspan 1h\n2min 7 soft # b\r\n1 3\n";
	assert_int_equal(sim_trace_parse(good, strlen(good), &t, &err), HALE_OK);
	assert_int_equal(t.count, 2);
	assert_true(t.span_s == 3600 && t.events[0].node == 3 && t.events[1].soft);
	sim_trace_fini(&t);
	assert_int_equal(sim_trace_parse("1 2\n3\n", 6, &t, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "line 2"));
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
	    cmocka_unit_test(levels_survive_what_they_should),
	    cmocka_unit_test(clones_restore_redundancy),
	    cmocka_unit_test(spare_nodes_run_out_and_are_repaired),
	    cmocka_unit_test(shadows_catch_up_and_jump),
	    cmocka_unit_test(parts_make_up_the_wall_time),
	    cmocka_unit_test(threads_change_no_bit),
	    cmocka_unit_test(a_recorded_run_plays_back),
	    cmocka_unit_test(what_never_finishes_is_seen),
	    cmocka_unit_test(policies_decide),
	    cmocka_unit_test(nonsense_is_refused),
	    cmocka_unit_test(bad_traces_are_refused_with_their_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
