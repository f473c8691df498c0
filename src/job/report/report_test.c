/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "job/report/report.h"

static void the_report_has_the_keys_that_others_rely_on(void **state)
{
	struct report r = {.job = "a.1", .ranks = 4, .restarts = 1};
	struct report_checkpoint c = {.id = 3, .bytes = 99, .complete = true, .seconds = 1.5};
	struct json_value *v, *first;
	struct json_out j;

	report_add_checkpoint(&r, &c);
	assert_non_null(report_add_failure(&r, 2, "here", "signal 9 (SIGKILL)", 0.5));
	json_out_init(&j);
	report_print(&r, 7, 2.25, &j);
	v = json_parse(j.text, j.len);
	assert_non_null(v);
	assert_string_equal(json_text(json_get(v, "job"), ""), "a.1");
	assert_int_equal(json_number_int(json_get(v, "exit"), -1), 7);
	assert_int_equal(json_number_int(json_get(v, "ranks"), -1), 4);
	assert_int_equal(json_number_int(json_get(v, "restarts"), -1), 1);
	assert_true(json_number(json_get(v, "wall_seconds"), 0) == 2.25);
	first = (struct json_value *)json_at(json_get(v, "checkpoints"), 0);
	assert_int_equal(json_number_int(json_get(first, "id"), -1), 3);
	assert_int_equal(json_number_int(json_get(first, "bytes"), -1), 99);
	assert_true(json_truth(json_get(first, "complete"), false));
	assert_true(json_number(json_get(first, "seconds"), 0) == 1.5);
	assert_non_null(json_get(first, "pause_seconds"));
	first = (struct json_value *)json_at(json_get(v, "failures"), 0);
	assert_int_equal(json_number_int(json_get(first, "rank"), -1), 2);
	assert_int_equal(json_number_int(json_get(first, "slot"), -1), 0);
	assert_string_equal(json_text(json_get(first, "node"), ""), "here");
	assert_true(json_number(json_get(first, "at_seconds"), 0) == 0.5);
	json_free(v);
	json_out_fini(&j);
	report_fini(&r);
}

static void what_happened_before_there_was_a_folder_is_in_the_record(void **state)
{
	char dir[] = "/tmp/hale-record-test-XXXXXX", path[128], line[256];
	struct record r;
	struct json_out j;
	FILE *f;
	int lines = 0;

	assert_non_null(mkdtemp(dir));
	record_init(&r);
	record_begin(&j, "launched");
	record_end(&r, &j);
	record_open(&r, dir);
	record_begin(&j, "checkpoint");
	json_uint(&j, "id", 1);
	record_end(&r, &j);
	record_fini(&r);
	snprintf(path, sizeof(path), "%s/record.jsonl", dir);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		struct json_value *v = json_parse(line, strlen(line));
		assert_non_null(v);
		assert_string_equal(json_text(json_get(v, "event"), ""),
				    lines == 0 ? "launched" : "checkpoint");
		json_free(v);
		lines++;
	}
	fclose(f);
	assert_int_equal(lines, 2);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_report_has_the_keys_that_others_rely_on),
	    cmocka_unit_test(what_happened_before_there_was_a_folder_is_in_the_record),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
