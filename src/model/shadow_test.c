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
#include "model/sim/sim_random.h"

#define YEAR_S (365.25 * 86400)
#define HOUR_S 3600.0

static void assert_near(double a, double b, double tolerance)
{
	if (!(fabs(a - b) <= tolerance))
		fail_msg("%.12g is not %.12g +- %g", a, b, tolerance);
}

static struct model_shadow pairs(double n, double mtbf_s, double shape, double speed)
{
	return (struct model_shadow){.law = {mtbf_s, shape},
				     .work_s = 100,
				     .pairs = n,
				     .main_speed = 1,
				     .shadow_speed = speed,
				     .after_speed = 1,
				     .static_part = 0.6,
				     .exponent = 3,
				     .socket_w = 200};
}

static struct model_shadow_result solve(struct model_shadow in)
{
	struct model_shadow_result r;
	struct error err = {0};

	if (model_shadow(&in, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static void without_failures_the_shadow_only_costs_power(void **state)
{
	struct model_shadow in = pairs(10, INFINITY, 1, 0.5);
	struct model_shadow_result r = solve(in);

	assert_near(r.pair_time_s, 100, 1e-12);
	assert_near(r.expected_time_s, 100, 1e-9);
	assert_near(r.pair_energy_j, 200 * 100 * (1 + 0.6 + 0.4 * 0.125), 1e-9);
	assert_near(r.expected_energy_j, 10 * r.pair_energy_j, 1e-6);
	in.law.mean_s = 1e15;
	assert_near(solve(in).expected_time_s, 100, 1e-6);
}

static void a_twin_at_full_speed_loses_no_time(void **state)
{
	struct model_shadow_result r = solve(pairs(1000, 50, 1, 1));

	assert_near(r.pair_time_s, 100, 1e-9);
	assert_near(r.expected_time_s, 100, 1e-9);
	assert_near(r.worst_s, 100, 1e-9);
}

/* Exponential failures, a shadow that stands still: E[t] = ∫ (t + W) f dt + W e^(-W/M). */
static void one_pair_by_hand(void **state)
{
	double m = 300, w = 100, gone = -expm1(-w / m);
	double lost_at = m * gone - w * exp(-w / m); /* ∫ t f */
	struct model_shadow_result r = solve(pairs(1, m, 1, 0));

	assert_near(r.pair_time_s, lost_at + w * gone + w * exp(-w / m), 1e-9);
	assert_near(r.expected_time_s, r.pair_time_s, 1e-6);
	assert_near(r.pair_energy_j, 200 * ((1 + 0.6) * m * gone + w * gone), 1e-6);
	assert_near(r.worst_s, 200, 1e-12);
}

/* What the integrals say against playing it out, for laws and speeds of all kinds. */
static void expectations_agree_with_playing_it_out(void **state)
{
	static const struct {
		double pairs, mtbf_s, shape, main, shadow, after;
	} cases[] = {
	    {1, 200, 1, 1, 0.3, 1},   {20, 2000, 1, 1, 0, 1},	{20, 500, 0.7, 1, 0.5, 1},
	    {5, 200, 2, 0.8, 0.5, 1}, {5, 300, 1, 1, 0.2, 0.6}, {50, 1e4, 1.5, 0.9, 0.1, 0.9},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_shadow in =
		    pairs(cases[i].pairs, cases[i].mtbf_s, cases[i].shape, cases[i].shadow);
		struct model_shadow_result r;
		const int runs = 40000;
		double time = 0, time2 = 0, energy = 0, energy2 = 0, n = cases[i].pairs, full = 200;
		struct sim_random random;

		in.main_speed = cases[i].main;
		in.after_speed = cases[i].after;
		r = solve(in);
		sim_random_init(&random, 11, i, 0);
		for (int run = 0; run < runs; run++) {
			double last = 0, e = 0, alive = 0, idle = 0;

			for (int p = 0; p < n; p++) {
				double end = 100 / in.main_speed, sockets = 2, done;
				double f = model_law_draw_s(&in.law, sim_random_unit(&random));
				double up = fmin(f, end);

				e += full * up *
				     (2 * 0.6 +
				      0.4 * (pow(in.main_speed, 3) + pow(in.shadow_speed, 3)));
				done = end;
				if (f < end) {
					double rest = (100 - in.shadow_speed * f) / in.after_speed;

					e += full * rest * (0.6 + 0.4 * pow(in.after_speed, 3));
					done = f + rest;
					sockets = 1;
				}
				alive += sockets;
				idle += sockets * done;
				last = fmax(last, done);
			}
			e += full * 0.6 * (alive * last - idle);
			time += last / runs;
			time2 += last * last / runs;
			energy += e / runs;
			energy2 += e * e / runs;
		}
		/* four standard deviations of the mean */
		assert_near(r.expected_time_s, time, 4 * sqrt((time2 - time * time) / runs) + 1e-6);
		assert_near(r.expected_energy_j, energy,
			    4 * sqrt((energy2 - energy * energy) / runs) + 1e-3);
	}
}

static void more_pairs_wait_longer_but_never_beyond_the_worst(void **state)
{
	double last = 0;

	for (double n = 1; n < 1e9; n *= 10) {
		struct model_shadow_result r = solve(pairs(n, 1e6, 1, 0.25));

		assert_true(r.expected_time_s > last && r.expected_time_s < r.worst_s);
		last = r.expected_time_s;
	}
	assert_near(last, 175, 0.01); /* 100 (2 - 1/4) */
}

static void the_best_speed_is_a_minimum(void **state)
{
	for (int goal = 0; goal <= MODEL_GOAL_ENERGY_DELAY; goal++)
		for (double shape = 0.7; shape < 2; shape *= 1.5) {
			struct model_shadow in = pairs(50, 2e4, shape, 0);
			double best, cost[3], speed[3];

			assert_int_equal(model_shadow_best_speed(&in, goal, &best, NULL), HALE_OK);
			speed[0] = best;
			speed[1] = fmax(0, best - 0.02);
			speed[2] = fmin(1, best + 0.02);
			for (int i = 0; i < 3; i++) {
				struct model_shadow_result r;

				in.shadow_speed = speed[i];
				r = solve(in);
				cost[i] = goal == MODEL_GOAL_PAIR_ENERGY ? r.pair_energy_j
					  : goal == MODEL_GOAL_ENERGY	 ? r.expected_energy_j
					  : goal == MODEL_GOAL_TIME
					      ? r.expected_time_s
					      : r.expected_energy_j * r.expected_time_s;
			}
			assert_true(cost[0] <= cost[1] * (1 + 1e-9));
			assert_true(cost[0] <= cost[2] * (1 + 1e-9));
			if (goal == MODEL_GOAL_TIME)
				assert_near(best, 1, 1e-6);
		}
}

static struct model_contest contest(double overhead)
{
	return (struct model_contest){.law = {25 * YEAR_S, 1},
				      .work_s = 168 * HOUR_S,
				      .plain_sockets = 20e6 / 200,
				      .socket_w = 200,
				      .static_part = overhead,
				      .exponent = 3,
				      .ckpt_s = 900,
				      .restart_s = 1500,
				      .stretched_speed = 0.5,
				      .goal = MODEL_GOAL_PAIR_ENERGY,
				      .shadow_speed = -1,
				      .pairs_alone = true};
}

/* Two parameters are hidden: stretched replication runs at half speed, and what is labelled 80 % is
 * static power of 4.2 times the dynamic one, 4.2/5.2 = 0.8077; 0.8 would give 121,212 and 111,111.
 */
static void table_4_follows(void **state)
{
	static const double really[] = {0.6, 4.2 / 5.2};

	for (size_t i = 0; i < ARRAY_LEN(table_4); i++) {
		struct model_contest c = contest(really[i]);
		const double printed[3][2] = {{table_4[i].replication, table_4[i].replication_main},
					      {table_4[i].stretched, table_4[i].stretched_main},
					      {table_4[i].shadowing, table_4[i].shadowing_main}};

		for (int m = MODEL_REPLICATION; m < MODEL_METHODS; m++) {
			struct model_contest_result r;
			struct model_budget_result b;
			struct model_budget in = {.power_w = 20e6,
						  .socket_w = 200,
						  .static_part = really[i],
						  .exponent = 3};

			assert_int_equal(model_contest(&c, m, &r, NULL), HALE_OK);
			in.main_speed = r.main_speed;
			in.shadow_speed = r.shadow_speed;
			assert_int_equal(model_budget(&in, &b, NULL), HALE_OK);
			assert_near(b.main_sockets, printed[m - 1][1], 0);
			assert_near(b.sockets, printed[m - 1][0], 0);
			assert_near(b.plain_sockets, 100000, 0);
		}
	}
}

/* Figure 7 at 25 years: published 96,700 and 53,100 for energy, 97,600 and 52,700 for time. */
static void break_evens_are_near_the_published(void **state)
{
	static const struct {
		enum model_method method;
		bool energy;
		double sockets, within;
	} published[] = {{MODEL_REPLICATION, true, 96700, 0.005},
			 {MODEL_SHADOWING, true, 53100, 0.005},
			 {MODEL_REPLICATION, false, 97600, 0.013},
			 {MODEL_SHADOWING, false, 52700, 0.013}};
	struct model_contest c = contest(0.6);

	for (size_t i = 0; i < ARRAY_LEN(published); i++) {
		double n;

		assert_int_equal(model_break_even(&c, published[i].method, published[i].energy, 1e3,
						  1e6, &n, NULL),
				 HALE_OK);
		assert_near(n, published[i].sockets, published[i].within * published[i].sockets);
	}
}

/* Which is per pair. A job that waits for its last pair takes almost twice as long under lazy
 * shadows, so they win much later. */
static void a_whole_job_breaks_even_later(void **state)
{
	struct model_contest c = contest(0.6);
	double alone, whole;

	assert_int_equal(model_break_even(&c, MODEL_SHADOWING, false, 1e3, 1e6, &alone, NULL),
			 HALE_OK);
	c.pairs_alone = false;
	assert_int_equal(model_break_even(&c, MODEL_SHADOWING, false, 1e3, 1e6, &whole, NULL),
			 HALE_OK);
	assert_true(whole > 3 * alone);
	c.plain_sockets = 1000; /* there is none among few sockets */
	assert_int_equal(model_break_even(&c, MODEL_SHADOWING, false, 1e3, 1e4, &whole, NULL),
			 HALE_ERR_ARGUMENT);
}

static void the_best_speed_for_a_job_is_a_minimum(void **state)
{
	for (int goal = MODEL_GOAL_ENERGY; goal <= MODEL_GOAL_ENERGY_DELAY; goal++)
		for (double sockets = 100; sockets <= 1e5; sockets *= 10) {
			struct model_contest c = contest(0.3);
			struct model_contest_result best, other;

			c.pairs_alone = false;
			c.plain_sockets = sockets;
			c.goal = goal;
			assert_int_equal(model_contest(&c, MODEL_SHADOWING, &best, NULL), HALE_OK);
			for (c.shadow_speed = 0; c.shadow_speed <= 1; c.shadow_speed += 0.125) {
				assert_int_equal(model_contest(&c, MODEL_SHADOWING, &other, NULL),
						 HALE_OK);
				if (goal != MODEL_GOAL_TIME && goal != MODEL_GOAL_ENERGY_DELAY)
					assert_true(best.energy_j <= other.energy_j * (1 + 1e-9));
				else if (goal == MODEL_GOAL_TIME)
					assert_true(best.time_s <= other.time_s * (1 + 1e-9));
				else
					assert_true(best.energy_j * best.time_s <=
						    other.energy_j * other.time_s * (1 + 1e-9));
			}
		}
}

static void better_sockets_break_even_later(void **state)
{
	struct model_contest c = contest(0.6);
	double last = 0;

	for (double years = 5; years <= 25; years += 5) {
		double n;

		c.law.mean_s = years * YEAR_S;
		assert_int_equal(model_break_even(&c, MODEL_SHADOWING, true, 100, 1e6, &n, NULL),
				 HALE_OK);
		assert_true(n > last);
		last = n;
	}
}

static void jumps_agree_with_playing_it_out(void **state)
{
	static const struct {
		double every_s, jump_s, speed;
	} cases[] = {{INFINITY, 5, 0.25}, {300, 5, 0.25}, {50, 2, 0}, {1e-3, 0, 0.5}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_jumping in = {.work_s = 1e6,
					   .pairs = 100,
					   .socket_mttf_s = 1e5,
					   .shadow_speed = cases[i].speed,
					   .jump_every_s = cases[i].every_s,
					   .jump_s = cases[i].jump_s};
		struct model_jumping_result r;
		struct sim_random random;
		double done = 0, wait = 0, jumps = 0, failures = 0;

		assert_int_equal(model_jumping(&in, &r, NULL), HALE_OK);
		assert_near(r.time_s, in.work_s + r.waiting_s + r.jumping_s, 1e-6);
		if (in.jump_every_s < 1) {
			assert_near(r.time_s, in.work_s, 1);
			continue;
		}
		sim_random_init(&random, 5, i, 0);
		while (done < 100 * in.work_s) {
			double age = sim_random_exp(&random) * 1000;

			if (age < in.jump_every_s)
				wait += (1 - in.shadow_speed) * age, failures++;
			else
				age = in.jump_every_s, jumps++;
			done += age;
		}
		assert_near(r.waiting_s, wait / 100, 0.02 * r.waiting_s);
		assert_near(r.failures, failures / 100, 0.02 * r.failures);
		assert_near(r.jumping_s, jumps * in.jump_s / 100, 0.02 * r.jumping_s + 1e-9);
	}
}

static void the_best_time_between_jumps_is_near_the_least(void **state)
{
	struct model_jumping in = {1e6, 100, 1e6, 0.25, INFINITY, 3};
	struct model_jumping_result r, less, more;

	assert_int_equal(model_jumping(&in, &r, NULL), HALE_OK);
	assert_near(r.time_s, 1e6 * (2 - 0.25), 1e-3); /* all since the last failure, done again */
	in.jump_every_s = r.best_every_s;
	assert_int_equal(model_jumping(&in, &r, NULL), HALE_OK);
	in.jump_every_s = 0.8 * r.best_every_s;
	assert_int_equal(model_jumping(&in, &less, NULL), HALE_OK);
	in.jump_every_s = 1.25 * r.best_every_s;
	assert_int_equal(model_jumping(&in, &more, NULL), HALE_OK);
	assert_true(r.time_s < less.time_s && r.time_s < more.time_s);
}

static void shared_cores_slow_shadows_and_logs_grow(void **state)
{
	double speed, growth, full_s;
	struct error err;

	assert_int_equal(model_shadow_collocated(4, 1, &speed, NULL), HALE_OK);
	assert_near(speed, 0.25, 1e-15);
	assert_int_equal(model_shadow_collocated(4, 1.5, &speed, NULL), HALE_OK);
	assert_near(speed, 0.125, 1e-15);
	for (size_t i = 0; i < ARRAY_LEN(table_2); i++) {
		assert_int_equal(
		    model_shadow_log(table_2[i], 0, 1, 1 << 30, &growth, &full_s, NULL), HALE_OK);
		assert_near(growth, table_2[i], 0);
		assert_int_equal(
		    model_shadow_log(table_2[i], 0.25, 1, 1 << 30, &growth, &full_s, NULL),
		    HALE_OK);
		assert_near(growth, 0.75 * table_2[i], 1e-6);
		assert_near(growth * full_s, 1 << 30, 1e-3);
	}
	assert_int_equal(model_shadow_log(1e6, 1, 1, 1, &growth, &full_s, NULL), HALE_OK);
	assert_true(isinf(full_s));
	assert_int_equal(model_shadow_log(1e6, 0.9, 0.5, 1, &growth, &full_s, &err),
			 HALE_ERR_ARGUMENT);
	assert_int_equal(model_shadow_collocated(0, 1, &speed, &err), HALE_ERR_ARGUMENT);
}

static void values_out_of_range_are_named(void **state)
{
	struct model_shadow in = pairs(10, 1000, 1, 1.5);
	struct model_shadow_result r;
	struct error err;

	assert_int_equal(model_shadow(&in, &r, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "shadow's speed is 1.5"));
	in = pairs(10, 1000, 1, 0.5);
	in.static_part = -0.1;
	assert_int_equal(model_shadow(&in, &r, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "static part"));
	in = pairs(10.5, 1000, 1, 0.5);
	assert_int_equal(model_shadow(&in, &r, &err), HALE_ERR_ARGUMENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(without_failures_the_shadow_only_costs_power),
	    cmocka_unit_test(a_twin_at_full_speed_loses_no_time),
	    cmocka_unit_test(one_pair_by_hand),
	    cmocka_unit_test(expectations_agree_with_playing_it_out),
	    cmocka_unit_test(more_pairs_wait_longer_but_never_beyond_the_worst),
	    cmocka_unit_test(the_best_speed_is_a_minimum),
	    cmocka_unit_test(table_4_follows),
	    cmocka_unit_test(break_evens_are_near_the_published),
	    cmocka_unit_test(a_whole_job_breaks_even_later),
	    cmocka_unit_test(the_best_speed_for_a_job_is_a_minimum),
	    cmocka_unit_test(better_sockets_break_even_later),
	    cmocka_unit_test(jumps_agree_with_playing_it_out),
	    cmocka_unit_test(the_best_time_between_jumps_is_near_the_least),
	    cmocka_unit_test(shared_cores_slow_shadows_and_logs_grow),
	    cmocka_unit_test(values_out_of_range_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
