/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include "policy/job_state.h"

static struct job_step step(job_state_t state, job_event_t event)
{
	return job_state_step(state, event);
}

static void every_pair_has_a_step(void **state)
{
	for (int s = 0; s < JOB_STATES; s++)
		for (int e = 0; e < JOB_EVENTS; e++) {
			struct job_step next = step((job_state_t)s, (job_event_t)e);

			assert_in_range(next.next, 0, JOB_STATES - 1);
			assert_in_range(next.action, 0, JOB_ACTIONS - 1);
		}
}

static void an_ended_job_stays_ended(void **state)
{
	for (int e = 0; e < JOB_EVENTS; e++) {
		struct job_step next = step(JOB_ENDED, (job_event_t)e);

		assert_int_equal(next.next, JOB_ENDED);
		assert_int_equal(next.action, JOB_DO_NOTHING);
	}
}

/* Nothing takes a job that ends back to life. */
static void an_ending_job_only_ends(void **state)
{
	for (int e = 0; e < JOB_EVENTS; e++) {
		struct job_step next = step(JOB_ENDING, (job_event_t)e);

		assert_true(job_state_over(next.next));
		assert_true(next.action == JOB_DO_NOTHING || next.action == JOB_CHECK_GONE ||
			    next.action == JOB_FINISH);
	}
}

static void every_live_state_can_end(void **state)
{
	for (int s = JOB_STARTING; s < JOB_ENDING; s++) {
		assert_int_equal(step((job_state_t)s, JOB_END).next, JOB_ENDING);
		assert_int_equal(step((job_state_t)s, JOB_END).action, JOB_END_ALL);
		assert_int_equal(step((job_state_t)s, JOB_STOP).action, JOB_STOP_ALL);
		assert_int_equal(step((job_state_t)s, JOB_SUPERSEDED).next, JOB_ENDED);
	}
	assert_int_equal(step(JOB_ENDING, JOB_ALL_GONE).next, JOB_ENDED);
}

/* Processes of two lives of the job never run at once: images start only when all are gone. */
static void images_start_only_after_all_are_gone(void **state)
{
	for (int s = 0; s < JOB_STATES; s++)
		for (int e = 0; e < JOB_EVENTS; e++) {
			struct job_step next = step((job_state_t)s, (job_event_t)e);

			if (next.action == JOB_RESTORE)
				assert_int_equal(e, JOB_CHECKPOINT_FOUND);
			if (next.action == JOB_FIND_TARGET) {
				assert_int_equal(s, JOB_CLEARING);
				assert_int_equal(e, JOB_ALL_GONE);
			}
			if (next.next == JOB_RESTORING && s != JOB_RESTORING)
				assert_int_equal(next.action, JOB_RESTORE);
			if (next.next == JOB_CLEARING && s != JOB_CLEARING)
				assert_int_equal(next.action, JOB_KILL_ALL);
		}
}

static void a_loss_is_assessed_and_only_then_rolled_back(void **state)
{
	assert_int_equal(step(JOB_RUNNING, JOB_RANK_KILLED).action, JOB_ASSESS_RANK);
	assert_int_equal(step(JOB_RUNNING, JOB_RANK_KILLED).next, JOB_RUNNING);
	assert_int_equal(step(JOB_RESTORING, JOB_RANK_KILLED).action, JOB_ASSESS_RANK);
	assert_int_equal(step(JOB_RUNNING, JOB_NODE_LOST).action, JOB_ASSESS_NODE);
	assert_int_equal(step(JOB_RESTORING, JOB_NODE_LOST).action, JOB_ASSESS_NODE);
	/* a second loss during a rollback is added to the first */
	assert_int_equal(step(JOB_CLEARING, JOB_NODE_LOST).action, JOB_ADD_NODE);
	assert_int_equal(step(JOB_CLEARING, JOB_RANK_KILLED).action, JOB_CHECK_GONE);
	assert_int_equal(step(JOB_RUNNING, JOB_ROLL_BACK).next, JOB_CLEARING);
	assert_int_equal(step(JOB_RESTORING, JOB_ROLL_BACK).next, JOB_CLEARING);
}

static void a_rank_that_fails_by_itself_is_not_rolled_back(void **state)
{
	assert_int_equal(step(JOB_RUNNING, JOB_RANK_FAILED).action, JOB_FAIL);
	assert_int_equal(step(JOB_RESTORING, JOB_RANK_FAILED).action, JOB_FAIL);
	assert_int_equal(step(JOB_RESTORING, JOB_RANK_NOT_REBUILT).action, JOB_REFUSE_TARGET);
	assert_int_equal(step(JOB_RUNNING, JOB_RANK_NOT_REBUILT).action, JOB_FAIL);
}

static void the_whole_way_back(void **state)
{
	const job_event_t events[] = {
	    JOB_NODES_READY,	  JOB_RANK_KILLED, JOB_ROLL_BACK, JOB_RANK_KILLED, JOB_ALL_GONE,
	    JOB_CHECKPOINT_FOUND, JOB_RANK_READY,  JOB_ALL_BACK,  JOB_RANK_DONE,   JOB_ALL_GONE};
	const job_state_t states[] = {JOB_RUNNING,  JOB_RUNNING,   JOB_CLEARING,  JOB_CLEARING,
				      JOB_CLEARING, JOB_RESTORING, JOB_RESTORING, JOB_RUNNING,
				      JOB_RUNNING,  JOB_ENDED};
	job_state_t s = JOB_STARTING;

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		s = step(s, events[i]).next;
		assert_int_equal(s, states[i]);
	}
}

/* What reads the newest checkpoint waits for the manifest under way; what ends the job does not. */
static void only_what_rolls_back_needs_the_newest_checkpoint(void **state)
{
	for (int s = 0; s < JOB_STATES; s++)
		for (int e = 0; e < JOB_EVENTS; e++) {
			job_action_t action = step((job_state_t)s, (job_event_t)e).action;
			bool needs = job_event_needs_newest((job_state_t)s, (job_event_t)e);

			if (action == JOB_ASSESS_RANK || action == JOB_ASSESS_NODE ||
			    action == JOB_FIND_TARGET || action == JOB_REJECT ||
			    action == JOB_REFUSE_TARGET || action == JOB_LATE_TARGET)
				assert_true(needs);
			if (e == JOB_STOP || e == JOB_END || s == JOB_ENDING)
				assert_false(needs);
		}
}

static void names_are_distinct_words(void **state)
{
	for (int a = 0; a < JOB_EVENTS; a++)
		for (int b = 0; b < a; b++)
			assert_string_not_equal(job_event_name((job_event_t)a),
						job_event_name((job_event_t)b));
	assert_string_equal(job_state_name(JOB_RESTORING), "restoring");
	assert_string_equal(job_event_name(JOB_SUPERSEDED), "superseded");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_pair_has_a_step),
	    cmocka_unit_test(an_ended_job_stays_ended),
	    cmocka_unit_test(an_ending_job_only_ends),
	    cmocka_unit_test(every_live_state_can_end),
	    cmocka_unit_test(images_start_only_after_all_are_gone),
	    cmocka_unit_test(a_loss_is_assessed_and_only_then_rolled_back),
	    cmocka_unit_test(a_rank_that_fails_by_itself_is_not_rolled_back),
	    cmocka_unit_test(the_whole_way_back),
	    cmocka_unit_test(only_what_rolls_back_needs_the_newest_checkpoint),
	    cmocka_unit_test(names_are_distinct_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
