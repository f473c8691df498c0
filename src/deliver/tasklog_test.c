// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include "deliver/tasklog.h"

struct tasklog_event {
	struct tasklog_record record;
	int value;
	char payload[8];
};

static struct tasklog_event *keep(struct tasklog *log, struct tasklog_channel *c, int value)
{
	struct tasklog_event *e =
	    (struct tasklog_event *)tasklog_record(log, c, sizeof(*e), sizeof(e->payload));

	if (e)
		e->value = value;
	return e;
}

static void events_are_replayed_in_order_and_then_happen(void **state)
{
	struct tasklog *log = tasklog_open();
	struct tasklog_channel *from3 = tasklog_channel(log, TASKLOG_RECEIVE, 2, 3, 7);
	struct tasklog_channel *any = tasklog_channel(log, TASKLOG_RECEIVE, 2, -1, 7);

	assert_ptr_not_equal(from3, any);
	assert_ptr_equal(from3, tasklog_channel(log, TASKLOG_RECEIVE, 2, 3, 7));
	for (int i = 0; i < 3; i++)
		keep(log, from3, i);
	keep(log, any, 10);
	assert_false(tasklog_replays(from3));
	/* twice: an error in an execution that is a second one itself */
	for (int time = 0; time < 2; time++) {
		tasklog_again(log);
		for (int i = 0; i < (time ? 3 : 2); i++) {
			assert_true(tasklog_replays(from3));
			assert_int_equal(((struct tasklog_event *)tasklog_replay(from3))->value, i);
		}
	}
	assert_false(tasklog_replays(from3));
	assert_true(tasklog_replays(any));
	keep(log, from3, 3);
	assert_int_equal(from3->committed, 4);
	tasklog_again(log);
	for (int i = 0; i < 4; i++)
		assert_int_equal(((struct tasklog_event *)tasklog_replay(from3))->value, i);
	tasklog_close(log);
}

static void sends_are_counted(void **state)
{
	struct tasklog *log = tasklog_open();
	struct tasklog_channel *to = tasklog_channel(log, TASKLOG_SEND, 0, 1, 0);
	uint64_t skipped = tasklog_totals.skipped;

	tasklog_count(to);
	tasklog_count(to);
	tasklog_again(log);
	assert_true(tasklog_replays(to));
	assert_null(tasklog_replay(to));
	tasklog_replay(to);
	assert_false(tasklog_replays(to));
	assert_int_equal(tasklog_totals.skipped, skipped + 2);
	tasklog_close(log);
}

static void logs_are_empty_again_and_their_memory_serves_the_next(void **state)
{
	struct tasklog *log = tasklog_open();
	struct tasklog_event *first = keep(log, tasklog_channel(log, TASKLOG_RECEIVE, 0, 0, 0), 1),
			     *again;

	tasklog_close(log);
	assert_int_equal(tasklog_totals.held, 0);
	assert_ptr_equal(tasklog_open(), log);
	assert_false(tasklog_replays(tasklog_channel(log, TASKLOG_RECEIVE, 0, 0, 0)));
	again = keep(log, tasklog_channel(log, TASKLOG_RECEIVE, 0, 0, 0), 2);
	assert_ptr_equal(first, again);
	tasklog_close(log);
}

static void records_live_as_long_as_a_request_holds_them(void **state)
{
	struct tasklog *log = tasklog_open();
	struct tasklog_event *e = keep(log, tasklog_channel(log, TASKLOG_RECEIVE, 0, 0, 0), 5),
			     *next;

	tasklog_ref_add(&e->record);
	tasklog_close(log);
	assert_null(e->record.log);
	log = tasklog_open();
	next = keep(log, tasklog_channel(log, TASKLOG_RECEIVE, 0, 0, 0), 6);
	assert_ptr_not_equal(e, next);
	assert_int_equal(e->value, 5);
	tasklog_shrink(&e->record, 0);
	tasklog_ref_drop(&e->record);
	tasklog_close(log);
	assert_int_equal(tasklog_totals.held, 0);
}

static void the_bound_makes_a_task_one_that_is_not_repeated(void **state)
{
	struct tasklog *log = tasklog_open();
	struct tasklog_channel *c = tasklog_channel(log, TASKLOG_RECEIVE, 0, 0, 0);
	size_t before = tasklog_max;

	tasklog_max = 20;
	assert_non_null(keep(log, c, 1));
	assert_non_null(keep(log, c, 2));
	assert_null(log->lost);
	assert_null(keep(log, c, 3));
	assert_non_null(log->lost);
	tasklog_close(log);
	log = tasklog_open();
	assert_null(log->lost);
	tasklog_close(log);
	tasklog_max = before;
	assert_true(tasklog_totals.peak >= 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(events_are_replayed_in_order_and_then_happen),
	    cmocka_unit_test(sends_are_counted),
	    cmocka_unit_test(logs_are_empty_again_and_their_memory_serves_the_next),
	    cmocka_unit_test(records_live_as_long_as_a_request_holds_them),
	    cmocka_unit_test(the_bound_makes_a_task_one_that_is_not_repeated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
