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
#include <math.h>
#include "report/report.h"

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

static void nodes_are_named_with_their_ranks(void **state)
{
	struct report r = {.job = "a.1", .ranks = 4}, again = {.job = "a.1"};
	const struct json_value *list;
	struct json_value *v;
	struct json_out j;

	report_node_has(&r, "north", 4, 0);
	report_node_has(&r, "south", 0, 0);
	report_node_has(&r, "north", 4, 1); /* nothing new */
	report_node_has(&r, "north", 0, 2);
	report_node_has(&r, "south", 4, 2.5);
	json_out_init(&j);
	report_print_inherited(&r, &j);
	v = json_parse(j.text, j.len);
	list = json_get(v, "nodes");
	assert_int_equal(json_count(list), 4);
	assert_string_equal(json_text(json_get(json_at(list, 3), "node"), ""), "south");
	assert_int_equal(json_number_int(json_get(json_at(list, 3), "ranks"), -1), 4);
	assert_true(json_number(json_get(json_at(list, 3), "at_seconds"), 0) == 2.5);
	report_read(&again, v);
	assert_int_equal(again.stay_count, 4);
	report_node_has(&again, "north", 0, 3); /* known to a new head, too */
	assert_int_equal(again.stay_count, 4);
	json_free(v);
	json_out_fini(&j);
	report_fini(&r);
	report_fini(&again);
}

static void replicas_clones_errors_and_audits_are_inherited(void **state)
{
	struct report r = {.job = "a.1", .ranks = 2, .degree = 3, .compares = true, .audits = true},
		      again = r;
	const struct report_clone clone = {
	    .rank = 1, .slot = 2, .from = "n0", .to = "n1", .bytes = 7, .downtime_seconds = 0.5};
	const struct report_sdc sdc = {.rank = 1,
				       .peer = 0,
				       .slot = -1,
				       .message = 12,
				       .named = true,
				       .first = 3,
				       .last = 4,
				       .action = "stopped"};
	const struct report_audit audit = {
	    .rank = 1, .node = "n0", .twin = "n1", .result = "differed", .wrong = "n0"};
	struct report_failure *f;
	struct json_value *v;
	struct json_out j;

	r.replicas_lost = 5;
	report_add_clone(&r, &clone);
	report_add_sdc(&r, &sdc);
	report_add_audit(&r, &audit);
	f = report_add_failure(&r, 1, "n0", "killed", 2);
	f->slot = 2;
	f->then = REPORT_GOES_ON;
	json_out_init(&j);
	report_print_inherited(&r, &j);
	v = json_parse(j.text, j.len);
	report_read(&again, v);
	assert_int_equal(again.replicas_lost, 5);
	assert_int_equal(again.clone_count, 1);
	assert_string_equal(again.clones[0].to, "n1");
	assert_true(again.clones[0].slot == 2 && again.clones[0].downtime_seconds == 0.5);
	assert_true(again.sdc_count == 1 && again.sdc[0].slot == -1 && again.sdc[0].message == 12);
	assert_true(again.sdc[0].named && again.sdc[0].last == 4 && !again.sdc[0].envelope);
	assert_true(again.audit_count == 1 && again.audit[0].rank == 1);
	assert_string_equal(again.audit[0].wrong, "n0");
	assert_int_equal(again.failures[0].slot, 2);
	assert_int_equal(again.failures[0].then, REPORT_GOES_ON);
	json_free(v);
	json_out_fini(&j);
	report_fini(&r);
	report_fini(&again);
}

static void many_events_of_info_displace_no_warnings(void **state)
{
	struct report r = {.job = "a.1", .ranks = 1}, next = {.job = "a.1"};
	const struct json_value *list;
	struct json_value *v;
	struct json_out j;
	unsigned infos = 0;

	for (int i = 0; i < 2000; i++) {
		struct report_event e = {.at_seconds = i};

		snprintf(e.severity, sizeof(e.severity), "%s", i % 10 ? "INFO" : "WARNING");
		snprintf(e.name, sizeof(e.name), "E%d", i);
		report_add_event(&r, &e);
	}
	assert_int_equal(r.event_count, REPORT_EVENTS);
	for (size_t i = 0; i < r.event_count; i++) {
		infos += r.events[i].severity[0] == 'I';
		assert_true(i == 0 || r.events[i - 1].at_seconds < r.events[i].at_seconds);
	}
	assert_int_equal(infos, REPORT_EVENTS_INFO);
	assert_string_equal(r.events[0].name, "E0"); /* the oldest warning */
	json_out_init(&j);
	report_print_inherited(&r, &j);
	v = json_parse(j.text, j.len);
	list = json_get(v, "events");
	assert_int_equal(json_count(list), REPORT_EVENTS_INHERITED);
	assert_string_equal(json_text(json_get(json_at(list, 0), "name"), ""), "E1950");
	report_read(&next, v);
	assert_int_equal(next.event_count, REPORT_EVENTS_INHERITED);
	assert_int_equal(next.events_before + next.event_count, 2000);
	assert_string_equal(next.events[next.event_count - 1].name, "E1999");
	json_free(v);
	json_out_fini(&j);
	report_fini(&r);
	report_fini(&next);
}

static struct report_checkpoint of_number(uint32_t k)
{
	return (struct report_checkpoint){.id = k,
					  .base = k % 8 == 1 ? 0 : k - 1,
					  .bytes = 1000 + k % 7,
					  .seconds = 0.5 + k % 3,
					  .at_seconds = k,
					  .complete = k % 100 != 0};
}

static struct json_value *printed(const struct report *r, bool inherited, size_t *len)
{
	struct json_value *v;
	struct json_out j;

	json_out_init(&j);
	if (inherited)
		report_print_inherited(r, &j);
	else
		report_print(r, 0, 1, &j);
	v = json_parse(j.text, j.len);
	assert_non_null(v);
	*len = j.len;
	json_out_fini(&j);
	return v;
}

/* Of the "incremental" ones in the profile. */
static double profile_of(const struct report *r, const char *key)
{
	struct json_value *v;
	struct json_out j;
	double x;

	json_out_init(&j);
	report_print_profile(r, NULL, 1, &j);
	v = json_parse(j.text, j.len);
	x = json_number(json_get(json_get(json_get(v, "checkpoints"), "incremental"), key), -1);
	json_free(v);
	json_out_fini(&j);
	return x;
}

static void a_job_of_a_month_has_a_report_of_bounded_length(void **state)
{
	enum { ALL = 50000 };
	struct report r = {.job = "a.1", .ranks = 1}, next = {.job = "a.1"};
	double sum = 0;
	unsigned n = 0;
	size_t len;
	struct json_value *v;

	for (uint32_t k = 1; k <= ALL; k++) {
		struct report_checkpoint c = of_number(k);

		report_add_checkpoint(&r, &c);
		assert_int_equal(report_newest_checkpoint(&r), k);
		assert_int_equal(report_checkpoint_at(&r, k)->id, k);
		assert_true(r.checkpoint_count <= REPORT_CHECKPOINTS);
		n += c.complete && c.base;
		sum += c.complete && c.base ? c.seconds : 0;
	}
	assert_null(report_checkpoint_at(&r, 1));
	assert_null(report_checkpoint_at(&r, ALL + 1));
	assert_null(report_checkpoint_at(&r, 0));
	v = printed(&r, false, &len);
	assert_int_equal(json_number_int(json_get(v, "checkpoints_before"), 0) +
			     (int64_t)json_count(json_get(v, "checkpoints")),
			 ALL);
	json_free(v);
	assert_int_equal(profile_of(&r, "count"), n);
	assert_true(fabs(profile_of(&r, "write_seconds") - sum / n) < 1e-9);
	/* what a new head gets says the same, and is short */
	v = printed(&r, true, &len);
	assert_true(len < 65536);
	report_read(&next, v);
	json_free(v);
	assert_int_equal(next.checkpoint_count, REPORT_INHERITED);
	assert_int_equal(report_newest_checkpoint(&next), ALL);
	assert_int_equal(report_checkpoint_at(&next, ALL)->id, ALL);
	assert_int_equal(profile_of(&next, "count"), n);
	assert_true(fabs(profile_of(&next, "write_deviation") - profile_of(&r, "write_deviation")) <
		    1e-9);
	report_fini(&r);
	report_fini(&next);
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
	    cmocka_unit_test(nodes_are_named_with_their_ranks),
	    cmocka_unit_test(replicas_clones_errors_and_audits_are_inherited),
	    cmocka_unit_test(many_events_of_info_displace_no_warnings),
	    cmocka_unit_test(a_job_of_a_month_has_a_report_of_bounded_length),
	    cmocka_unit_test(what_happened_before_there_was_a_folder_is_in_the_record),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
