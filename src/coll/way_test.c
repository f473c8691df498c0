/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way large payloads go, from costs that are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>
#include "coll/way.h"

enum { BYTES = 65536, SIZE = 0, KINDS = 1 << WAY_TAKE };

static struct way_costs costs;
static struct way_plan plan;

/* So many nanoseconds for BYTES. */
static void took(way_t way, uint64_t ns)
{
	struct way_clock c = {.runs = true, .ns = ns};
	way_note(&costs, WAY_TAKE, way, &c, BYTES);
}

/* One operation of a member that pays `pieces` or `single`, and decides. */
static struct way_order operation(uint64_t pieces, uint64_t single)
{
	if (way_due(&plan))
		way_weigh(&plan, way_cost(&costs, KINDS, SIZE, WAY_PIECES),
			  way_cost(&costs, KINDS, SIZE, WAY_SINGLE));
	struct way_order o = way_next(&plan);
	if (o.measure)
		took(o.way, o.way == WAY_PIECES ? pieces : single);
	return o;
}

static unsigned singles(unsigned operations, uint64_t pieces, uint64_t single)
{
	unsigned n = 0;
	for (unsigned i = 0; i < operations; i++)
		n += operation(pieces, single).way == WAY_SINGLE;
	return n;
}

static int anew(void **state)
{
	(void)state;
	memset(&costs, 0, sizeof(costs));
	memset(&plan, 0, sizeof(plan));
	way_forced = -1;
	return 0;
}

static void the_cheaper_way_is_taken_after_a_few_tries(void **state)
{
	(void)state;
	assert_int_equal(singles(8, 5000, 9000), 4);
	assert_int_equal(singles(100, 5000, 9000), 0);
	anew(NULL);
	assert_int_equal(singles(8, 30000, 9000), 4);
	assert_int_equal(singles(100, 30000, 9000), 100);
}

static void a_small_advantage_of_single_copies_does_not_count(void **state)
{
	(void)state;
	singles(8, 10000, 9500);
	assert_int_equal(singles(100, 10000, 9500), 0);
}

static void it_is_taken_again_when_it_has_become_cheaper(void **state)
{
	(void)state;
	singles(1000, 5000, 9000);
	singles(4000, 40000, 9000); /* what was measured once fades */
	assert_true(singles(120, 40000, 9000) >= 118);
	singles(8000, 5000, 40000);
	assert_true(singles(120, 5000, 40000) <= 2);
}

static void one_slow_copy_changes_nothing(void **state)
{
	(void)state;
	singles(100, 5000, 9000);
	for (int i = 0; i < 4; i++)
		took(WAY_PIECES, 100000000);
	assert_int_equal(singles(27, 5000, 9000), 0);
}

static void cells_that_have_been_renewed_leave_the_plan_as_it_was(void **state)
{
	(void)state;
	singles(100, 30000, 9000);
	memset(&costs, 0, sizeof(costs));
	assert_int_equal(singles(28, 30000, 9000), 28);
}

static void whoever_forces_a_way_gets_it(void **state)
{
	(void)state;
	way_forced = WAY_SINGLE;
	assert_int_equal(singles(300, 5000, 9000), 300);
	way_forced = WAY_PIECES;
	assert_int_equal(singles(300, 30000, 9000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(the_cheaper_way_is_taken_after_a_few_tries, anew),
	    cmocka_unit_test_setup(a_small_advantage_of_single_copies_does_not_count, anew),
	    cmocka_unit_test_setup(it_is_taken_again_when_it_has_become_cheaper, anew),
	    cmocka_unit_test_setup(one_slow_copy_changes_nothing, anew),
	    cmocka_unit_test_setup(cells_that_have_been_renewed_leave_the_plan_as_it_was, anew),
	    cmocka_unit_test_setup(whoever_forces_a_way_gets_it, anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
