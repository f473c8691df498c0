// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include "node/living.h"

enum { RANKS = 3 };

static unsigned char lost[RANKS * LIVING_DEGREE_MAX];

/* Every set of dead processes of that degree. */
static void in_all_views(uint32_t degree, void (*check)(const struct living *v))
{
	struct living v = {.nranks = RANKS, .degree = degree, .lost = lost};

	for (uint32_t set = 0; set < 1u << (RANKS * degree); set++) {
		for (uint32_t p = 0; p < RANKS * degree; p++)
			lost[p] = set >> p & 1;
		check(&v);
	}
}

static void provider_lives_and_is_own_slot_if_that_lives(const struct living *v)
{
	for (uint32_t r = 0; r < RANKS; r++)
		for (uint32_t s = 0; s < v->degree; s++) {
			int p = living_provider(v, r, s);

			if (living_count(v, r) == 0) {
				assert_int_equal(p, LIVING_NONE);
				continue;
			}
			assert_true(p >= 0 && living_lives(v, r, (uint32_t)p));
			if (living_lives(v, r, s))
				assert_int_equal(p, s);
		}
}

static void leader_is_lowest_living(const struct living *v)
{
	for (uint32_t r = 0; r < RANKS; r++) {
		int l = living_leader(v, r);

		for (int s = 0; s < (l == LIVING_NONE ? (int)v->degree : l); s++)
			assert_false(living_lives(v, r, (uint32_t)s));
		if (l != LIVING_NONE)
			assert_true(living_lives(v, r, (uint32_t)l));
	}
}

static void every_view_has_living_leaders_and_providers(void **state)
{
	for (uint32_t d = 1; d <= LIVING_DEGREE_MAX; d++) {
		in_all_views(d, provider_lives_and_is_own_slot_if_that_lives);
		in_all_views(d, leader_is_lowest_living);
	}
}

/* A witness leads and provides only as the last process of its rank. */
static void witness_is_passed_over(const struct living *seen)
{
	struct living v = *seen;

	v.audits = true;
	for (uint32_t r = 0; r < RANKS; r++) {
		bool others = living_lives(&v, r, 0) || living_lives(&v, r, 1);
		bool there = living_lives(&v, r, LIVING_WITNESS);

		assert_int_equal(living_is_witness(&v, r, LIVING_WITNESS), others && there);
		assert_false(living_is_witness(&v, r, 0) || living_is_witness(&v, r, 1));
		for (uint32_t s = 0; s < v.degree; s++) {
			int p = living_provider(&v, r, s);

			assert_int_equal(p == LIVING_WITNESS, there && !others);
			assert_int_equal(p == LIVING_NONE, !there && !others);
			if (p >= 0)
				assert_true(living_lives(&v, r, (uint32_t)p));
		}
	}
}

static void nobody_depends_on_a_witness(void **state)
{
	in_all_views(3, witness_is_passed_over);
}

static void a_process_dies_once(void **state)
{
	struct living v = {.nranks = RANKS, .degree = 2, .lost = lost};

	memset(lost, 0, sizeof(lost));
	assert_true(living_lose(&v, 4));
	assert_int_equal(v.number, 1);
	assert_false(living_lose(&v, 4));
	assert_int_equal(v.number, 1);
	assert_int_equal(living_count(&v, 1), 1);
	assert_int_equal(living_provider(&v, 1, 1), 0);
}

static void processes_count_slot_by_slot(void **state)
{
	struct living v = {.nranks = RANKS, .degree = 2, .lost = lost};

	for (uint32_t p = 0; p < RANKS * 2; p++)
		assert_int_equal(
		    living_process(&v, living_rank_of(p, RANKS), living_slot_of(p, RANKS)), p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_view_has_living_leaders_and_providers),
	    cmocka_unit_test(nobody_depends_on_a_witness),
	    cmocka_unit_test(a_process_dies_once),
	    cmocka_unit_test(processes_count_slot_by_slot),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
