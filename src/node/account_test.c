/* SPDX-License-Identifier: BSD-3-Clause */
/* What processes hand on of their protection, added up: of tasks, and of OpenCL. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "node/ocl_account.h"
#include "node/task_account.h"

/* The same again through JSON, twice. */
static struct task_account tasks_twice(const struct task_account *a)
{
	struct task_account sum = {0};
	struct json_value *v;
	struct json_out j;

	json_out_init(&j);
	task_account_json(a, &j);
	v = json_parse(j.text, strlen(j.text));
	assert_non_null(v);
	assert_true(json_number(json_get(v, "coverage"), -1) == task_account_coverage(a));
	task_account_add(&sum, v);
	task_account_add(&sum, v);
	json_free(v);
	json_out_fini(&j);
	return sum;
}

static void accounts_of_tasks_add_up(void **state)
{
	struct task_account a = {.processes = 1}, sum;

	for (int i = 0; i < TASK_COUNTS; i++)
		a.count[i] = 10 + (uint64_t)i;
	for (int i = 0; i < TASK_REASONS; i++)
		a.reason[i] = 100 + (uint64_t)i;
	for (int i = 0; i < TASK_BYTES; i++)
		a.bytes[i] = 1000 + (uint64_t)i;
	for (int i = 0; i < TASK_SHARES; i++)
		a.share[i] = i + 0.5;
	sum = tasks_twice(&a);
	assert_int_equal(sum.processes, 2);
	for (int i = 0; i < TASK_COUNTS; i++)
		assert_int_equal(sum.count[i], 20 + 2 * i);
	for (int i = 0; i < TASK_REASONS; i++)
		assert_int_equal(sum.reason[i], 200 + 2 * i);
	for (int i = 0; i < TASK_BYTES; i++)
		assert_int_equal(sum.bytes[i], 2000 + 2 * i);
	for (int i = 0; i < TASK_SHARES; i++)
		assert_true(sum.share[i] == 2 * i + 1);
}

static void coverage_is_of_errors_or_else_of_the_time(void **state)
{
	struct task_account a = {
	    .share = {[TASK_S_TASKS] = 6, [TASK_S_PROTECTED] = 4, [TASK_S_SERIAL] = 2}};

	assert_true(task_account_coverage(&a) == 0.5);
	a.count[TASK_STRUCK] = 10;
	a.count[TASK_FELL_BACK] = 1;
	assert_true(task_account_coverage(&a) == 0.9);
	a = (struct task_account){0};
	assert_true(task_account_coverage(&a) == 0);
}

static struct account account(void)
{
	struct account a = {
	    .processes = 1, .move = 0.5, .wall = 10, .device = "a device", .moved_to = "another"};

	for (int i = 0; i < ACCOUNT_COUNTS; i++)
		a.count[i] = 10 + (uint64_t)i;
	for (int i = 0; i < ACCOUNT_SHARES; i++)
		a.share[i] = 0.1 * (i + 1); /* 2.1 s in all */
	for (int i = 0; i < ACCOUNT_BYTES; i++)
		a.bytes[i] = 1024u << i;
	return a;
}

static void accounts_of_opencl_add_up(void **state)
{
	static const char still[] = "{\"commands\":1,\"wall_seconds\":1,\"device\":\"\"}";
	struct account a = account(), sum = {0};
	struct json_value *v;
	struct json_out j;

	json_out_init(&j);
	account_json(&a, &j);
	v = json_parse(j.text, strlen(j.text));
	assert_non_null(v);
	account_add(&sum, v);
	json_free(v);
	/* of one that did not move, and knows no device */
	v = json_parse(still, strlen(still));
	assert_non_null(v);
	account_add(&sum, v);
	json_free(v);
	json_out_fini(&j);
	assert_int_equal(sum.processes, 2);
	for (int i = 0; i < ACCOUNT_COUNTS; i++)
		assert_int_equal(sum.count[i], 10 + i + (i == ACCOUNT_COMMANDS));
	for (int i = 0; i < ACCOUNT_BYTES; i++)
		assert_int_equal(sum.bytes[i], 1024u << i);
	for (int i = 0; i < ACCOUNT_SHARES; i++)
		assert_true(fabs(sum.share[i] - a.share[i]) < 1e-9);
	assert_true(sum.wall == 11 && sum.move == 0.5);
	assert_string_equal(sum.device, "a device");
	assert_string_equal(sum.moved_to, "another");
}

/* 2.1 s of 10 s, of which 0.5 s have been a move. */
static void overhead_is_of_the_time_without(void **state)
{
	struct account a = account();

	assert_true(fabs(account_overhead(&a) - 100 * 2.1 / 7.4) < 1e-9);
	a.wall = 2;
	assert_true(account_overhead(&a) == 0); /* no time is left of the program */
}

static void written(const struct account *a, const char *end, char *text, size_t cap)
{
	char path[64];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/tmp/hale-account-%d%s", (int)getpid(), end);
	assert_null(account_write(a, path));
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, cap - 1, f);
	text[n] = '\0';
	fclose(f);
	unlink(path);
}

static void the_name_of_the_file_says_its_form(void **state)
{
	struct account a = account();
	struct json_value *v;
	char text[4096];

	a.processes = 2;
	written(&a, ".txt", text, sizeof(text));
	assert_non_null(strstr(text, "processes        2, added up\ndevice           a device\n"
				     "moved to         another, in 0.500 s\n"
				     "wall time        10.000 s, overhead 28.38 %\n"
				     "commands         12\n"
				     "synchronisations 10, of which 11 closed an epoch\n"
				     "checks           13\ncheckpoints      14\n"
				     "errors           15\nrecoveries       16\n"));
	assert_non_null(strstr(text, "\nlog            0.100000 s    1.000 %\n"));
	assert_non_null(strstr(text, "\nreplay         0.600000 s    6.000 %\n"));
	assert_non_null(strstr(text, "host data logged   1.0 KiB\n"));
	assert_non_null(strstr(text, "restored           16.0 KiB\n"));
	a.processes = 1;
	a.count[ACCOUNT_MOVES] = 0;
	written(&a, ".log", text, sizeof(text));
	assert_non_null(strstr(text, "device           a device\nwall time"));
	assert_null(strstr(text, "added up"));
	written(&a, ".json", text, sizeof(text));
	v = json_parse(text, strlen(text));
	assert_int_equal(json_number_int(json_get(v, "commands"), 0), 12);
	assert_true(json_number(json_get(v, "overhead_percent"), 0) == account_overhead(&a));
	json_free(v);
	assert_true(account_is_picture("a.svg") && account_is_picture("b/a.png"));
	assert_false(account_is_picture(".svg") || account_is_picture("a.svg.txt"));
	assert_true(account_is_text("a.txt") && !account_is_text("a.json"));
	assert_non_null(account_write(&a, "/no/such/folder/a.txt"));
	assert_non_null(account_write(&a, "/no/such/folder/a.svg"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(accounts_of_tasks_add_up),
	    cmocka_unit_test(coverage_is_of_errors_or_else_of_the_time),
	    cmocka_unit_test(accounts_of_opencl_add_up),
	    cmocka_unit_test(overhead_is_of_the_time_without),
	    cmocka_unit_test(the_name_of_the_file_says_its_form),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
