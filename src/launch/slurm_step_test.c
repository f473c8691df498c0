/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/slurm_step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static bool slots(uint32_t count, const char *text, uint32_t got[4])
{
	struct host at[4] = {0};
	struct hosts h = {.at = at, .count = count};
	bool right = slurm_step_slots(&h, text);

	for (uint32_t k = 0; k < count; k++)
		got[k] = at[k].slots;
	return right;
}

static void tasks_of_nodes_are_their_slots(void **state)
{
	uint32_t got[4];

	assert_true(slots(4, "2(x3),1", got));
	assert_int_equal(got[0], 2);
	assert_int_equal(got[2], 2);
	assert_int_equal(got[3], 1);
	assert_true(slots(1, "16", got));
	assert_int_equal(got[0], 16);
}

static void other_texts_are_refused(void **state)
{
	static const char *const bad[] = {
	    "",	      "x",	 "2(x",	      "2(x9)",	"2,",
	    "2(x3)1", "2(x2),1", "99999(x3)", "-1(x3)", "2(x99999999999999999999)"};
	uint32_t got[4];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(slots(4, bad[i], got));
}

static void a_step_has_tasks_and_an_interactive_one_has_none(void **state)
{
	setenv("SLURM_STEP_NUM_TASKS", "4", 1);
	assert_int_equal(slurm_step_tasks(), 0);
	setenv("SLURM_STEP_ID", "4294967290", 1);
	assert_int_equal(slurm_step_tasks(), 0);
	setenv("SLURM_STEP_ID", "3", 1);
	assert_int_equal(slurm_step_tasks(), 4);
	setenv("SLURM_STEP_NUM_TASKS", "1", 1);
	assert_int_equal(slurm_step_tasks(), 0);
	assert_true(slurm_step_first());
	setenv("SLURM_PROCID", "2", 1);
	assert_false(slurm_step_first());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tasks_of_nodes_are_their_slots),
	    cmocka_unit_test(other_texts_are_refused),
	    cmocka_unit_test(a_step_has_tasks_and_an_interactive_one_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
