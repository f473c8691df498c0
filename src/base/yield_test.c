/* SPDX-License-Identifier: BSD-3-Clause */
/* Time here is what the stand-ins say it is. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "base/clock.h"

static uint64_t now_ticks = 1000000000, away;
static int yields;

static uint64_t ticks_said(void)
{
	return now_ticks;
}

static int yield_said(void)
{
	yields++;
	now_ticks += away;
	return 0;
}

#define clock_ticks ticks_said
#define sched_yield yield_said
#include "base/yield.c"

enum { SOON = 20000, HOGGED = 10000000 };

/* A wait of one yield. */
static bool wait_once(uint64_t next_away)
{
	struct yields y = {0};
	away = next_away;
	return yield_core(&y);
}

/* Whatever came before is forgotten. */
static void settle(void)
{
	now_ticks += 100000000000u;
	for (int i = 0; i < 100000; i++)
		wait_once(SOON);
	wait_once(LATE + 1);
	for (int i = 0; i < 100000; i++)
		wait_once(SOON);
	yields = 0;
}

static void a_core_that_comes_back_soon_is_given_away_again(void **state)
{
	struct yields y = {0};
	settle();
	away = SOON;
	for (int i = 0; i < 1000; i++)
		assert_true(yield_core(&y));
	assert_int_equal(yields, 1000);
	assert_true(yields_are_long(&y));
}

static void beside_who_computes_few_waits_yield(void **state)
{
	int waits = 0;
	settle();
	wait_once(HOGGED);
	for (uint64_t begin = now_ticks; now_ticks - begin < 2000ull * HOGGED; waits++)
		if (!wait_once(HOGGED))
			now_ticks += SLEEP;
	assert_in_range(yields, 10, 100);
	assert_in_range(waits, 100000, 1000000);
}

static void late_yields_are_borne_where_sleeping_would_cost_more(void **state)
{
	settle();
	for (int i = 0; i < 100; i++) {
		for (int k = 0; k < HOGGED / SLEEP + 1; k++)
			assert_true(wait_once(SOON));
		assert_false(wait_once(HOGGED));
	}
}

static uint32_t many(void)
{
	return 1000000;
}

static uint32_t none(void)
{
	return 0;
}

static void those_who_wait_as_we_do_are_yielded_to_however_long(void **state)
{
	settle();
	yield_among(many);
	for (int i = 0; i < 100; i++)
		assert_true(wait_once(HOGGED));
	assert_int_equal(yields, 100);
	yield_among(none);
	for (int i = 0; i < SURE - 1; i++)
		assert_true(wait_once(HOGGED));
	assert_false(wait_once(HOGGED)); /* the yields before it were good */
	assert_false(wait_once(HOGGED));
	assert_true(yield_is_dear());
	yield_among(NULL);
}

static uint32_t asked;

static uint32_t none_every_third_time(void)
{
	return ++asked % 3 == 0 ? 0 : 1000000;
}

static void who_wants_a_core_for_a_moment_does_not_compute(void **state)
{
	yield_among(many);
	settle();
	yield_among(none_every_third_time);
	for (int i = 0; i < 100; i++)
		assert_true(wait_once(HOGGED));
	assert_int_equal(yields, 100);
	yield_among(NULL);
}

static void it_yields_again_when_others_have_gone(void **state)
{
	settle();
	for (int i = 0; i < 1000; i++)
		if (!wait_once(HOGGED))
			now_ticks += 10 * SLEEP;
	now_ticks += PAUSE_MAX;
	for (int i = 0; i < 1000; i++)
		assert_true(wait_once(SOON));
}

static void work_between_two_waits_is_not_taken_for_others(void **state)
{
	settle();
	away = SOON;
	for (int i = 0; i < 10; i++) {
		struct yields y = {0};
		assert_true(yield_core(&y));
		assert_true(yield_core(&y));
		now_ticks += HOGGED;
	}
	assert_int_equal(yields, 20);
}

static void a_counter_that_goes_back_on_another_core_is_not_late(void **state)
{
	settle();
	for (int i = 0; i < 10; i++)
		assert_true(wait_once(-(uint64_t)HOGGED));
	assert_int_equal(yields, 10);
}

static void who_only_looks_is_away_for_half_of_the_time(void **state)
{
	uint64_t computed = 0;
	settle();
	away = HOGGED;
	for (int i = 0; i < 100000; i++) {
		yield_fairly();
		now_ticks += 3000;
		computed += 3000;
	}
	assert_in_range((uint64_t)yields * HOGGED, computed - 2 * HOGGED, computed + 2 * HOGGED);
}

static void who_looks_among_others_that_look_always_yields(void **state)
{
	settle();
	away = SOON;
	for (int i = 0; i < 1000; i++)
		yield_fairly();
	assert_int_equal(yields, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_core_that_comes_back_soon_is_given_away_again),
	    cmocka_unit_test(beside_who_computes_few_waits_yield),
	    cmocka_unit_test(late_yields_are_borne_where_sleeping_would_cost_more),
	    cmocka_unit_test(those_who_wait_as_we_do_are_yielded_to_however_long),
	    cmocka_unit_test(who_wants_a_core_for_a_moment_does_not_compute),
	    cmocka_unit_test(it_yields_again_when_others_have_gone),
	    cmocka_unit_test(work_between_two_waits_is_not_taken_for_others),
	    cmocka_unit_test(a_counter_that_goes_back_on_another_core_is_not_late),
	    cmocka_unit_test(who_only_looks_is_away_for_half_of_the_time),
	    cmocka_unit_test(who_looks_among_others_that_look_always_yields),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
