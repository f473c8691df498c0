/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "policy/cadence.h"

static struct cadence_view view(double pause_s, double writing_s)
{
	return (struct cadence_view){.pause_s = pause_s,
				     .writing_s = writing_s,
				     .cost_s = -1,
				     .ranks = 4,
				     .cores = 8,
				     .overhead = 0.01,
				     .least_s = 30,
				     .nodes = 1};
}

static void a_cheap_checkpoint_comes_at_the_interval_of_least_loss(void **state)
{
	struct cadence_view v = view(0.1, 1);
	struct cadence c = cadence_next(&v);

	/* sqrt(2 * 0.1 s * 1 day) is 131 s */
	assert_int_equal(c.reason, CADENCE_BEST);
	assert_true(c.interval_s > 125 && c.interval_s < 135);
}

static void failures_of_earlier_jobs_count_and_a_given_rate_stands_alone(void **state)
{
	struct cadence_view v = view(0.1, 1), often = v;
	double day = cadence_mtbf_s(&v);

	/* nine failures in nine hours of this node: one in some three hours, with the assumed day
	 */
	often.past_failures = 9;
	often.past_node_seconds = 9 * 3600;
	assert_true(fabs(cadence_mtbf_s(&often) - (day + 9 * 3600) / 10) < 1);
	assert_true(cadence_next(&often).interval_s < 0.5 * cadence_next(&v).interval_s);
	/* the same on eight nodes: each hour of the job was eight of theirs */
	often.nodes = v.nodes = 8;
	assert_true(fabs(cadence_mtbf_s(&often) - (cadence_mtbf_s(&v) + 9 * 450) / 10) < 1);
	often.mtbf_s = v.mtbf_s = 3600;
	assert_true(cadence_mtbf_s(&often) == cadence_mtbf_s(&v));
}

static void a_dear_one_costs_no_more_than_it_may(void **state)
{
	for (double pause = 20; pause < 1e4; pause *= 1.7) {
		struct cadence_view v = view(pause, pause);
		struct cadence c = cadence_next(&v);

		assert_true(c.cost_s / (c.cost_s + c.interval_s) <= 0.01 + 1e-9);
	}
	struct cadence_view v = view(100, 100);
	assert_int_equal(cadence_next(&v).reason, CADENCE_OVERHEAD);
}

static void no_combination_costs_more_than_it_may(void **state)
{
	for (double pause = 1e-4; pause < 1e3; pause *= 3)
		for (double writing = pause; writing < 1e5; writing *= 4)
			for (double mtbf = 1; mtbf < 1e9; mtbf *= 10)
				for (uint32_t cores = 1; cores < 20; cores += 3) {
					struct cadence_view v = view(pause, writing);
					v.mtbf_s = mtbf;
					v.cores = cores;
					struct cadence c = cadence_next(&v);
					double whole = c.interval_s + c.cost_s;

					assert_true(c.cost_s >= pause);
					assert_true(c.cost_s <= (0.01 + 1e-9) * whole);
					assert_true(c.interval_s >= 30);
				}
}

static void writers_beside_ranks_that_fill_the_cores_cost_half_their_time(void **state)
{
	struct cadence_view v = view(0.1, 10);

	assert_true(fabs(cadence_cost_s(&v) - 0.1) < 1e-9);
	v.cores = 4;
	assert_true(fabs(cadence_cost_s(&v) - 5.1) < 1e-9);
	v.cores = 1;
	assert_true(fabs(cadence_cost_s(&v) - 5.1) < 1e-9);
	v.cores = 6;
	assert_true(fabs(cadence_cost_s(&v) - 2.6) < 1e-9);
}

static void what_was_measured_counts_within_what_is_possible(void **state)
{
	struct cadence_view v = view(0.1, 10);

	v.cores = 4;
	v.cost_s = 0.3;
	assert_true(cadence_cost_s(&v) == 0.3);
	v.cost_s = 0.01; /* noise: it stood still for longer */
	assert_true(cadence_cost_s(&v) == 0.1);
	v.cost_s = 1000;
	assert_true(fabs(cadence_cost_s(&v) - 10.1) < 1e-9);
}

static void images_are_not_written_all_the_time(void **state)
{
	struct cadence_view v = view(0.01, 60);
	struct cadence c = cadence_next(&v);

	assert_int_equal(c.reason, CADENCE_DISK);
	assert_true(fabs(c.interval_s - 540) < 1e-6);
}

static void failures_that_happen_shorten_the_interval(void **state)
{
	struct cadence_view v = view(0.5, 1);
	double before = cadence_next(&v).interval_s, after;

	v.run_s = 3600;
	v.failures = 6;
	after = cadence_next(&v).interval_s;
	assert_true(after < before / 2);
	/* and quiet days lengthen it */
	v.run_s = 30 * 86400.0;
	v.failures = 0;
	assert_true(cadence_next(&v).interval_s > 4 * before);
}

static void a_given_rate_counts_instead_of_the_assumed_one(void **state)
{
	struct cadence_view v = view(0.1, 1);

	assert_true(cadence_mtbf_s(&v) < CADENCE_JOB_MTBF_S);
	v.nodes = 10000;
	assert_true(cadence_mtbf_s(&v) < CADENCE_JOB_MTBF_S / 6);
	v.mtbf_s = 1e6;
	assert_true(cadence_mtbf_s(&v) == 1e6);
}

static void an_attempt_in_vain_is_followed_by_rarer_ones(void **state)
{
	assert_true(cadence_retry_s(30, 1) == 30);
	assert_true(cadence_retry_s(30, 3) == 120);
	assert_true(cadence_retry_s(30, 1000000) == 900);
	assert_true(cadence_retry_s(3600, 9) == 3600);
}

static void errors_that_tasks_mend_stretch_the_interval_by_equation_18(void **state)
{
	for (double covered = 0; covered < 0.999; covered += 0.0625) {
		struct cadence_view v = view(0.1, 0.1);
		double without, ratio;

		v.overhead = 1;
		v.least_s = 0;
		v.mtbf_s = 1e7;
		without = cadence_next(&v).interval_s;
		v.covered = covered;
		ratio = cadence_next(&v).interval_s / without;
		assert_true(fabs(ratio * sqrt(1 - covered) - 1) < 1e-3);
	}
	struct cadence_view v = view(0.1, 0.1);

	/* failures that did happen count as they are */
	v.covered = 0.9;
	v.failures = 3;
	v.run_s = 1000;
	v.mtbf_s = 1e5;
	assert_true(fabs(cadence_mtbf_s(&v) - 101000 / 3.1) < 1e-6);
}

static void coverage_goes_from_what_is_expected_to_what_is_seen(void **state)
{
	struct cadence_tasks t = {.memory = 1};

	assert_true(cadence_coverage(&t) == 0);
	t.protected_s = 80;
	t.exposed_s = 100;
	assert_true(fabs(cadence_coverage(&t) - 0.8) < 1e-12);
	t.fell = 1;
	assert_true(fabs(cadence_coverage(&t) - 0.4) < 1e-12);
	t.mended = 998;
	assert_true(fabs(cadence_coverage(&t) - 998.8 / 1000) < 1e-12);
	t.mended = 1u << 30;
	assert_true(cadence_coverage(&t) < 1);
	t.protected_s = 1e9;
	t.mended = 0;
	assert_true(cadence_coverage(&t) <= 0.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_cheap_checkpoint_comes_at_the_interval_of_least_loss),
	    cmocka_unit_test(failures_of_earlier_jobs_count_and_a_given_rate_stands_alone),
	    cmocka_unit_test(a_dear_one_costs_no_more_than_it_may),
	    cmocka_unit_test(no_combination_costs_more_than_it_may),
	    cmocka_unit_test(writers_beside_ranks_that_fill_the_cores_cost_half_their_time),
	    cmocka_unit_test(what_was_measured_counts_within_what_is_possible),
	    cmocka_unit_test(images_are_not_written_all_the_time),
	    cmocka_unit_test(failures_that_happen_shorten_the_interval),
	    cmocka_unit_test(a_given_rate_counts_instead_of_the_assumed_one),
	    cmocka_unit_test(errors_that_tasks_mend_stretch_the_interval_by_equation_18),
	    cmocka_unit_test(coverage_goes_from_what_is_expected_to_what_is_seen),
	    cmocka_unit_test(an_attempt_in_vain_is_followed_by_rarer_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
