/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "policy/form.h"

static const struct form_view fresh = {.may_compress = true, .may_change = true};

/* Plays checkpoints whose kinds cost what is said; returns how many of the last 20 were of a kind.
 */
static uint32_t play(struct form_view v, const double cost[FORM_KINDS], double bytes,
		     form_kind_t kind, uint32_t counts[FORM_KINDS])
{
	uint32_t last = 0;

	for (int k = 0; k < FORM_KINDS; k++)
		counts[k] = 0;
	for (int i = 0; i < 40; i++) {
		struct form f = form_next(&v);
		form_kind_t got = (f.changes ? FORM_CHANGES : FORM_PLAIN) + (f.compress ? 1 : 0);

		assert_true(!f.changes || v.based); /* never without a base */
		assert_true(f.track || !f.changes);
		v.kind[got].count++;
		v.kind[got].cost_s = cost[got];
		v.kind[got].bytes = bytes;
		v.based = f.track;
		counts[got]++;
		last += i >= 20 && got == kind;
	}
	return last;
}

static void the_cheapest_form_wins_whichever_it_is(void **state)
{
	static const double costs[FORM_KINDS][FORM_KINDS] = {
	    {1, 2, 3, 3}, {2, 1, 3, 3}, {2, 3, 1, 9}, {3, 2, 9, 1}};
	uint32_t counts[FORM_KINDS];

	for (form_kind_t k = 0; k < FORM_KINDS; k++)
		assert_int_equal(play(fresh, costs[k], 4096, k, counts), 20);
}

static void each_form_that_could_be_better_is_tried(void **state)
{
	static const double cost[] = {1, 2, 3, 3};
	uint32_t counts[FORM_KINDS];

	play(fresh, cost, 4096, FORM_PLAIN, counts);
	assert_int_equal(counts[FORM_LZ4], FORM_SERIES);
	assert_int_equal(counts[FORM_CHANGES], FORM_SERIES);
	assert_int_equal(counts[FORM_CHANGES_LZ4], 0); /* lz4 has lost already */
}

static void what_hardly_differs_changes_nothing(void **state)
{
	static const double cost[] = {1, 0.97, 0.98, 0.98};
	uint32_t counts[FORM_KINDS];

	assert_int_equal(play(fresh, cost, 4096, FORM_PLAIN, counts), 20);
}

static void noting_writes_is_not_for_nothing(void **state)
{
	static const double cost[] = {1, 2, 0.5, 0.5};
	uint32_t counts[FORM_KINDS];

	assert_int_equal(play(fresh, cost, 1e6 * 4096, FORM_PLAIN, counts), 20); /* 0.5 s + 1 s */
	assert_int_equal(play(fresh, cost, 1e5 * 4096, FORM_CHANGES, counts), 20);
}

static void what_the_user_has_said_stays(void **state)
{
	static const double cost[] = {9, 1, 9, 1};
	struct form_view v = {.changes = true};
	uint32_t counts[FORM_KINDS];
	struct form f = form_next(&v);

	assert_true(f.track && f.changes && !f.compress);
	v = (struct form_view){.compress = true, .may_change = true};
	assert_int_equal(play(v, (const double[]){1, 9, 1, 2}, 4096, FORM_CHANGES_LZ4, counts), 20);
	assert_int_equal(counts[FORM_PLAIN] + counts[FORM_CHANGES], 0);
	v = (struct form_view){.may_change = true};
	assert_int_equal(play(v, cost, 4096, FORM_PLAIN, counts), 20);
	assert_int_equal(counts[FORM_LZ4] + counts[FORM_CHANGES_LZ4], 0);
	v = (struct form_view){.may_compress = true};
	assert_int_equal(play(v, cost, 4096, FORM_LZ4, counts), 20);
	assert_int_equal(counts[FORM_CHANGES] + counts[FORM_CHANGES_LZ4], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_cheapest_form_wins_whichever_it_is),
	    cmocka_unit_test(each_form_that_could_be_better_is_tried),
	    cmocka_unit_test(what_hardly_differs_changes_nothing),
	    cmocka_unit_test(noting_writes_is_not_for_nothing),
	    cmocka_unit_test(what_the_user_has_said_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
