/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "wire/lease/lease.h"

enum { T = 1000000000 };

static void a_lease_counts_from_the_ask(void **state)
{
	struct lease_held l = {.term = T};
	uint64_t first = lease_ask(&l, 100);

	assert_false(lease_holds(&l, 100));
	assert_true(lease_grant(&l, first));
	assert_true(lease_holds(&l, 100 + T - 1));
	assert_false(lease_holds(&l, 100 + T));
}

static void a_late_grant_of_an_old_ask_takes_nothing_away(void **state)
{
	struct lease_held l = {.term = T};
	uint64_t first = lease_ask(&l, 100), second = lease_ask(&l, 500);

	assert_true(lease_grant(&l, second));
	assert_true(lease_grant(&l, first));
	assert_true(lease_holds(&l, 500 + T - 1));
	assert_false(lease_holds(&l, 500 + T));
}

static void what_was_never_asked_is_not_granted(void **state)
{
	struct lease_held l = {.term = T};
	uint64_t first = lease_ask(&l, 100);

	assert_false(lease_grant(&l, 0));
	assert_false(lease_grant(&l, first + 1));
	for (int i = 0; i < LEASE_ASKS; i++)
		lease_ask(&l, 200);
	/* its time is no longer known */
	assert_false(lease_grant(&l, first));
	assert_false(lease_holds(&l, 200));
}

static void a_dropped_lease_comes_back_by_a_new_ask_only(void **state)
{
	struct lease_held l = {.term = T};

	lease_grant(&l, lease_ask(&l, 100));
	lease_drop(&l);
	assert_false(lease_holds(&l, 100));
	lease_grant(&l, lease_ask(&l, 300));
	assert_true(lease_holds(&l, 300));
}

static void without_a_term_everything_is_allowed(void **state)
{
	struct lease_held l = {.term = 0};

	assert_true(lease_holds(&l, 12345));
}

/* Whenever the head takes it for lost, the lease is over, also with clocks a tenth apart. */
static void the_head_waits_longer_than_the_node(void **state)
{
	for (uint64_t term = T / 2; term < 100ull * T; term *= 3)
		for (uint64_t delay = 0; delay < term; delay += term / 7 + 1)
			assert_true(lease_lost_at(term, 5000 + delay) > 5000 + term + term / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_lease_counts_from_the_ask),
	    cmocka_unit_test(a_late_grant_of_an_old_ask_takes_nothing_away),
	    cmocka_unit_test(what_was_never_asked_is_not_granted),
	    cmocka_unit_test(a_dropped_lease_comes_back_by_a_new_ask_only),
	    cmocka_unit_test(without_a_term_everything_is_allowed),
	    cmocka_unit_test(the_head_waits_longer_than_the_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
