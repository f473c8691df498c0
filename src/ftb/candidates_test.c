/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "ftb/broker_private.h"

enum { BROKERS = 200, ARITIES = 12 };

static void all_before_a_broker_and_nobody_else_may_be_its_parent(void **state)
{
	int order[BROKERS];

	for (unsigned arity = 1; arity <= ARITIES; arity++)
		for (int self = 0; self < BROKERS; self++) {
			bool seen[BROKERS] = {0};

			assert_int_equal(tree_candidates(self, arity, order), self);
			for (int i = 0; i < self; i++) {
				assert_in_range(order[i], 0, self - 1);
				assert_false(seen[order[i]]);
				seen[order[i]] = true;
			}
		}
}

static void the_proper_parent_comes_first_then_its_ancestors(void **state)
{
	int order[BROKERS];

	for (unsigned arity = 1; arity <= ARITIES; arity++)
		for (int self = 1; self < BROKERS; self++) {
			int above = self;

			tree_candidates(self, arity, order);
			for (int i = 0; above > 0; i++) {
				above = (above - 1) / (int)arity;
				assert_int_equal(order[i], above);
			}
		}
}

static void nobody_is_the_proper_parent_of_more_than_the_arity(void **state)
{
	int order[BROKERS];

	for (unsigned arity = 1; arity <= ARITIES; arity++) {
		unsigned children[BROKERS] = {0};

		for (int self = 1; self < BROKERS; self++) {
			tree_candidates(self, arity, order);
			children[order[0]]++;
			assert_true(children[order[0]] <= arity);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_before_a_broker_and_nobody_else_may_be_its_parent),
	    cmocka_unit_test(the_proper_parent_comes_first_then_its_ancestors),
	    cmocka_unit_test(nobody_is_the_proper_parent_of_more_than_the_arity),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
