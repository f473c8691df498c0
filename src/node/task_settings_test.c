/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "node/task_settings.h"

static char why[160];

static struct task_settings settings(const char *text)
{
	struct task_settings s;

	if (!task_settings_read(&s, text, why))
		fail_msg("'%s': %s", text, why);
	return s;
}

static void what_is_not_said_has_its_usual_value(void **state)
{
	struct task_settings s = settings("");

	assert_int_equal(s.retries, 3);
	assert_int_equal(s.protect, TASK_PROTECT_ALL);
	assert_true(s.residual == 0.1 && s.memory == 0.5 && s.log_max == 1 << 30);
	assert_false(s.keep_inputs || s.check_writes);
}

static void each_setting_is_read(void **state)
{
	struct task_settings s = settings("retries:7,protect:auto,residual:5%,memory:0.25,log:64M,"
					  "inputs:keep,check:writes");

	assert_int_equal(s.retries, 7);
	assert_int_equal(s.protect, TASK_PROTECT_AUTO);
	assert_true(s.residual == 0.05 && s.memory == 0.25);
	assert_int_equal(s.log_max, 64 << 20);
	assert_true(s.keep_inputs && s.check_writes);
	s = settings("protect:none,retries:0");
	assert_int_equal(s.protect, TASK_PROTECT_NONE);
	assert_int_equal(s.retries, 0);
	assert_int_equal(settings("retries:1000").retries, 1000);
	assert_true(settings("residual:0,memory:100%").memory == 1);
}

static void other_settings_are_refused(void **state)
{
	static const char *const bad[] = {
	    "retries",	    "retries:",	    "retries:1001", "retries:-1",
	    "retries:3x",   "protect:some", "residual:1.1", "residual:-0.1",
	    "residual:5%%", "memory:half",  "memory:nan",   "log:much",
	    "inputs:drop",  "check:reads",  "colour:red",   ",",
	    ":3",	    "retries=3",    "retries:3,,"};
	struct task_settings s;
	char longest[80] = "log:";

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (task_settings_read(&s, bad[i], why))
			fail_msg("'%s' was taken", bad[i]);
		assert_non_null(strstr(why, bad[i]));
	}
	memset(longest + 4, '0', 64); /* a value has 63 bytes at most */
	assert_false(task_settings_read(&s, longest, why));
	longest[4 + 63] = '\0';
	assert_true(task_settings_read(&s, longest, why));
}

static void errors_to_pretend_are_read(void **state)
{
	struct task_due d;

	assert_true(task_due_read(&d, "prob=10%", why));
	assert_true(d.prob == 0.1 && d.seed == 1 && d.times == 1 && d.at == TASK_AT_END);
	assert_true(task_due_read(&d, "seed=0,prob=1,at=copy,times=1000", why));
	assert_true(d.prob == 1 && d.seed == 0 && d.times == 1000 && d.at == TASK_AT_COPY);
	assert_true(task_due_read(&d, "at=random,prob=0", why) && d.at == TASK_AT_RANDOM);
	assert_true(task_due_read(&d, "at=page,prob=0", why) && d.at == TASK_AT_PAGE);
	assert_true(task_due_read(&d, "at=end,prob=0", why) && d.at == TASK_AT_END);
}

static void other_errors_are_refused(void **state)
{
	static const char *const bad[] = {"",
					  "seed=3",
					  "prob=2",
					  "prob=0.1,at=now",
					  "prob=1,seed=-1",
					  "prob=1,times=0",
					  "prob=1,times=1001",
					  "prob:1",
					  "prob=1,when=end"};
	struct task_due d;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (task_due_read(&d, bad[i], why))
			fail_msg("'%s' was taken", bad[i]);
		assert_non_null(strstr(why, bad[i]));
		assert_true(d.prob == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_not_said_has_its_usual_value),
	    cmocka_unit_test(each_setting_is_read),
	    cmocka_unit_test(other_settings_are_refused),
	    cmocka_unit_test(errors_to_pretend_are_read),
	    cmocka_unit_test(other_errors_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
