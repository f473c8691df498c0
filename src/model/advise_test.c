/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/base.h"
#include "model/advise.h"

static bool near(double a, double b, double part)
{
	return fabs(a - b) <= part * fabs(b);
}

/* Every 10 s a checkpoint that costs 1 s and is whole after 2 s; a restart takes 3 s. */
static double played(double work, const double *failures)
{
	return advise_played_s(work, 10, 1, 2, 3, failures);
}

static void runs_worked_out_by_hand(void **state)
{
	/* 10 s of work, then 9 s between two checkpoints of 1 s */
	assert_true(near(played(9, (double[]){INFINITY}), 9, 1e-12));
	assert_true(near(played(10.5, (double[]){INFINITY}), 11.5, 1e-12));
	assert_true(near(played(28, (double[]){INFINITY}), 30, 1e-12));
	/* before the first checkpoint: from the beginning, 3 s later */
	assert_true(near(played(9, (double[]){5, INFINITY}), 5 + 3 + 9, 1e-12));
	/* at 11 s the first one is not whole, at 12.5 s it is and 10 s of work are safe */
	assert_true(near(played(12, (double[]){11, INFINITY}), 11 + 3 + 13, 1e-12));
	assert_true(near(played(12, (double[]){12.5, INFINITY}), 12.5 + 3 + 2, 1e-12));
	/* during the restart: it begins again; after the end: nothing */
	assert_true(near(played(9, (double[]){5, 6, INFINITY}), 6 + 3 + 9, 1e-12));
	assert_true(near(played(9, (double[]){9.5, INFINITY}), 9, 1e-12));
}

static double uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

/* The formula is the mean of what is played out, over many runs with exponential failures. */
static void the_formula_is_the_mean_of_runs(void **state)
{
	static const double mtbf[] = {20, 60, 400};
	uint64_t seed = 1;

	for (size_t i = 0; i < ARRAY_LEN(mtbf); i++) {
		enum { RUNS = 4000, FAILURES = 4000 };
		static double failures[FAILURES + 1];
		double sum = 0, wall;

		for (int run = 0; run < RUNS; run++) {
			double t = 0;
			int n = 0;

			while (n < FAILURES && t < 3000)
				failures[n++] = t += -mtbf[i] * log(uniform(&seed));
			failures[n] = INFINITY;
			sum += advise_played_s(100, 5, 0.4, 0.8, 1, failures);
		}
		assert_int_equal(advise_checkpointed_s(100, 5, 0.4, 0.8, 1, mtbf[i], &wall, NULL),
				 HALE_OK);
		/* it takes failures during restarts and the first interval in another way */
		assert_true(near(sum / RUNS, wall, 0.03));
	}
}

static void intervals_are_said_in_two_digits_that_read_back(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} cases[] = {{0.0123, "12ms"}, {0.812, "810ms"}, {1.27, "1.3s"}, {34.6, "35s"},
		     {119, "120s"},    {1331, "22min"},	 {7300, "2.0h"}, {86400 * 9, "220h"}};
	char text[16];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double read, rounded = advise_round_s(cases[i].seconds, text);

		assert_string_equal(text, cases[i].text);
		assert_true(units_parse_seconds(text, &read));
		assert_true(near(read, rounded, 1e-9));
		assert_true(near(rounded, cases[i].seconds, 0.051));
	}
}

static struct advise_measure measure(void)
{
	struct advise_known cost = {1, 0.8, 1.2, ADVISE_MEASURED};
	struct advise_measure m = {.ranks = 4, .app_s = 100, .alpha = 0.2, .f_send = 0.5};

	m.full = (struct advise_checkpoint){5, 1e9, 0.1, cost, {2, 1.5, 2.5, ADVISE_MEASURED}};
	m.restart_s = (struct advise_known){3, 2, 4, ADVISE_ASSUMED};
	m.beta = (struct advise_known){0.1, 0.09, 0.11, ADVISE_MEASURED};
	return m;
}

static struct advise_machine machine(double nodes, double mttf_s)
{
	return (struct advise_machine){.nodes = nodes,
				       .fails = {mttf_s, 1},
				       .work_s = 256 * 3600,
				       .node_w = 200,
				       .static_part = 0.5,
				       .power_limit_w = INFINITY,
				       .task_waste = 0.01};
}

static const struct advise_choice *choice(const struct advise_choice *all, size_t count,
					  const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(all[i].name, name) == 0)
			return &all[i];
	fail_msg("%s is not among the choices", name);
	return NULL;
}

static void the_best_comes_first(void **state)
{
	const double year = 365 * 86400.0;
	struct advise_measure m = measure();
	struct advise_choice all[ADVISE_CHOICES_MAX];
	const struct advise_choice *c;
	struct advise_machine k = machine(10, 50 * year);
	size_t count;

	/* few failures: checkpoints cost next to nothing, a second replica β */
	assert_int_equal(advise_choose(&m, &k, false, all, &count, NULL), HALE_OK);
	assert_string_equal(all[0].name, "checkpoints");
	c = choice(all, count, "2x + clone");
	assert_true(near(c->loss.value, 0.1, 0.01));
	assert_true(c->loss.low < 0.095 && c->loss.high > 0.105);
	assert_true(near(c->energy_j.value, 20 * 200 * c->time_s.value, 1e-9));
	/* a failure every few seconds: nobody gets on with checkpoints of 1 s */
	k = machine(2e6, year / 4);
	assert_int_equal(advise_choose(&m, &k, false, all, &count, NULL), HALE_OK);
	assert_true(choice(all, count, "none")->why[0]);
	assert_true(choice(all, count, "checkpoints")->why[0] ||
		    choice(all, count, "checkpoints")->loss.value > 1);
}

/* A pair that has lost one needs luck until the end, or a copy of the other one. */
static void copies_save_what_pairs_alone_lose(void **state)
{
	const double year = 365 * 86400.0;
	struct advise_measure m = measure();
	struct advise_choice all[ADVISE_CHOICES_MAX];
	struct advise_machine k = machine(1e4, 5 * year);
	size_t count;

	assert_int_equal(advise_choose(&m, &k, false, all, &count, NULL), HALE_OK);
	assert_true(choice(all, count, "2x")->time_s.value >
		    1.05 * choice(all, count, "2x + clone")->time_s.value);
}

/* Between none and all twice, in time and in nodes; ranks that the program has. */
static void some_ranks_twice_lie_between(void **state)
{
	struct advise_measure m = measure();
	struct advise_choice all[ADVISE_CHOICES_MAX];
	struct advise_machine k = machine(1000, 365 * 86400.0);
	const struct advise_choice *some, *twice;
	size_t count;

	m.ranks = 8;
	assert_int_equal(advise_choose(&m, &k, false, all, &count, NULL), HALE_OK);
	some = choice(all, count, "2x of some + checkpoints");
	twice = choice(all, count, "2x + checkpoints");
	assert_true(some->partial >= 0.25 && some->partial <= 0.75);
	assert_true(near(some->nodes, 1000 * (1 + some->partial), 1e-9));
	assert_true(some->nodes < twice->nodes && some->interval_s < twice->interval_s);
	assert_non_null(strstr(some->flags, "--replicas 2:0-"));
	m.ranks = 1;
	assert_int_equal(advise_choose(&m, &k, false, all, &count, NULL), HALE_OK);
	for (size_t i = 0; i < count; i++)
		assert_string_not_equal(all[i].name, "2x of some + checkpoints");
}

/* The more ranks, the cheaper an audit, and the later it comes to each. */
static void audits_cost_a_part_of_replicas(void **state)
{
	struct advise_measure m = measure();
	struct advise_silent few[ADVISE_SILENT], many[ADVISE_SILENT];

	m.full.pause_s = 0.05;
	m.ranks = 4;
	advise_silent(&m, few);
	m.ranks = 400;
	advise_silent(&m, many);
	assert_string_equal(few[0].flags, "--audit 20s");
	assert_true(few[0].cost > 0.25 && few[0].cost < few[1].cost && few[1].cost < few[2].cost);
	assert_true(many[0].cost < 0.01 && many[0].found_s > 99 * few[0].found_s);
	assert_true(isinf(few[1].found_s) && !few[1].corrects && few[2].corrects);
}

static void limits_of_power_are_kept(void **state)
{
	struct advise_measure m = measure();
	struct advise_choice all[ADVISE_CHOICES_MAX];
	struct advise_machine k = machine(1000, 365 * 86400.0);
	size_t count;

	k.power_limit_w = 1500 * 200;
	assert_int_equal(advise_choose(&m, &k, false, all, &count, NULL), HALE_OK);
	assert_true(choice(all, count, "2x")->over_power);
	assert_false(choice(all, count, "checkpoints")->over_power);
	for (size_t i = 1; i < count; i++)
		assert_true(all[i].why[0] || !all[i - 1].why[0]);
}

static void what_the_user_gives_is_exact(void **state)
{
	struct advise_measure m = measure();
	struct advise_choice all[ADVISE_CHOICES_MAX];
	struct advise_machine k = machine(1000, 365 * 86400.0);
	const struct advise_choice *c;
	size_t count;

	advise_measure_override(&m, 10, 20);
	assert_int_equal(advise_choose(&m, &k, false, all, &count, NULL), HALE_OK);
	c = choice(all, count, "checkpoints");
	assert_true(near(c->loss.low, c->loss.value, 1e-9));
	assert_true(near(c->loss.high, c->loss.value, 1e-9));
	assert_true(near(c->young_s, sqrt(2 * 10 * 365 * 86.4), 1e-9));
}

/* One full checkpoint in eight, seven differences. */
static void differences_cost_what_eight_of_them_do_in_the_mean(void **state)
{
	struct advise_measure m = measure();
	struct advise_choice all[ADVISE_CHOICES_MAX];
	struct advise_machine k = machine(1000, 365 * 86400.0);
	const struct advise_choice *full, *steps;
	double wall;
	size_t count;

	m.full.cost_s = (struct advise_known){8, 8, 8, ADVISE_GIVEN};
	m.full.write_s = (struct advise_known){16, 16, 16, ADVISE_GIVEN};
	m.restart_s = (struct advise_known){3, 3, 3, ADVISE_GIVEN};
	m.incremental.count = 5;
	m.incremental.cost_s = (struct advise_known){1.6, 1.6, 1.6, ADVISE_GIVEN};
	m.incremental.write_s = (struct advise_known){4, 4, 4, ADVISE_GIVEN};
	assert_int_equal(advise_choose(&m, &k, false, all, &count, NULL), HALE_OK);
	full = choice(all, count, "checkpoints");
	steps = choice(all, count, "incremental checkpoints");
	assert_true(near(full->young_s, sqrt(2 * 8 * 365 * 86.4), 1e-9));
	assert_true(near(steps->young_s, sqrt(2 * 2.4 * 365 * 86.4), 1e-9));
	assert_int_equal(advise_checkpointed_s(k.work_s, steps->interval_s, 2.4, 5.5, 3, 365 * 86.4,
					       &wall, NULL),
			 HALE_OK);
	assert_true(near(steps->time_s.value, wall, 1e-9));
	/* all of it is given: nothing is uncertain */
	assert_true(near(steps->time_s.low, wall, 1e-9) && near(steps->time_s.high, wall, 1e-9));
	m.incremental.count = 0;
	assert_int_equal(advise_choose(&m, &k, false, all, &count, NULL), HALE_OK);
	for (size_t i = 0; i < count; i++)
		assert_string_not_equal(all[i].name, "incremental checkpoints");
}

static void senseless_questions_are_refused(void **state)
{
	struct advise_measure m = measure();
	struct advise_choice all[ADVISE_CHOICES_MAX];
	struct advise_machine k = machine(1, 1e9);
	struct error err;
	size_t count;

	k.nodes = 0.5;
	assert_int_equal(advise_choose(&m, &k, false, all, &count, &err), HALE_ERR_ARGUMENT);
	k = machine(1, 1e9);
	k.coverage = 1;
	assert_int_equal(advise_choose(&m, &k, false, all, &count, &err), HALE_ERR_ARGUMENT);
	k = machine(1, 1e9);
	m.full.count = 0;
	assert_int_equal(advise_choose(&m, &k, false, all, &count, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "--ckpt-cost"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(runs_worked_out_by_hand),
	    cmocka_unit_test(the_formula_is_the_mean_of_runs),
	    cmocka_unit_test(intervals_are_said_in_two_digits_that_read_back),
	    cmocka_unit_test(the_best_comes_first),
	    cmocka_unit_test(copies_save_what_pairs_alone_lose),
	    cmocka_unit_test(some_ranks_twice_lie_between),
	    cmocka_unit_test(audits_cost_a_part_of_replicas),
	    cmocka_unit_test(limits_of_power_are_kept),
	    cmocka_unit_test(what_the_user_gives_is_exact),
	    cmocka_unit_test(differences_cost_what_eight_of_them_do_in_the_mean),
	    cmocka_unit_test(senseless_questions_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
