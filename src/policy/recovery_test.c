/* SPDX-License-Identifier: BSD-3-Clause */
/* recovery.h, partner.h and failover.h: all combinations where there are few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include "policy/failover.h"
#include "policy/partner.h"
#include "policy/recovery.h"

static const struct recovery_facts good = {
    .allowed = true, .restarts = 0, .restarts_max = 3, .checkpoint = true, .node_is_left = true};

/* A job goes back exactly when it may, can, and has something to go back to. */
static void a_node_loss_in_all_combinations(void **state)
{
	for (unsigned bits = 0; bits < 32; bits++) {
		struct recovery_facts f = {.allowed = bits & 1,
					   .checkpoint = bits & 2,
					   .beginning = bits & 4,
					   .node_is_left = bits & 8,
					   .restarts = bits & 16 ? 3 : 2,
					   .restarts_max = 3};
		bool back = (bits & 1) && (bits & 6) && (bits & 8) && !(bits & 16);
		recovery_verdict_t v = recovery_judge(&f, NULL);

		assert_int_equal(v == RECOVERY_ROLL_BACK, back);
		assert_int_equal(recovery_verdict_text(v) == NULL, back);
	}
}

static void the_same_death_twice_ends_the_job(void **state)
{
	struct recovery_death death = {.signal = SIGSEGV, .previous_signal = SIGSEGV};

	assert_int_equal(recovery_judge(&good, &death), RECOVERY_SAME_DEATH);
	death.previous_signal = SIGFPE;
	assert_int_equal(recovery_judge(&good, &death), RECOVERY_ROLL_BACK);
	death.previous_signal = 0;
	assert_int_equal(recovery_judge(&good, &death), RECOVERY_ROLL_BACK);
	/* SIGKILL comes from outside, and says nothing about the program */
	death = (struct recovery_death){
	    .signal = SIGKILL, .previous_signal = SIGKILL, .uncatchable = true};
	assert_int_equal(recovery_judge(&good, &death), RECOVERY_ROLL_BACK);
}

static void only_used_up_restarts_give_hales_own_status(void **state)
{
	struct recovery_facts f = good;

	f.restarts = f.restarts_max;
	assert_int_equal(recovery_judge(&f, NULL), RECOVERY_TOO_OFTEN);
	for (int v = 0; v < RECOVERY_VERDICTS; v++)
		assert_int_equal(recovery_verdict_is_ours((recovery_verdict_t)v),
				 v == RECOVERY_TOO_OFTEN);
}

static bool is_even(void *arg, uint32_t id)
{
	return id % 2 == 0;
}

static bool is_any(void *arg, uint32_t id)
{
	return true;
}

static void the_newest_that_is_reachable_and_not_skipped(void **state)
{
	const uint32_t ids[] = {2, 3, 5, 6, 8, 9};
	const struct recovery_skip none = {0}, some = {.above = 5, .to = 8};

	assert_int_equal(recovery_newest(ids, 6, &none, is_any, NULL), 9);
	assert_int_equal(recovery_newest(ids, 6, &none, is_even, NULL), 8);
	assert_int_equal(recovery_newest(ids, 6, &some, is_even, NULL), 2);
	assert_int_equal(recovery_newest(ids, 5, &some, is_any, NULL), 5);
	assert_int_equal(recovery_newest(ids, 0, &none, is_any, NULL), 0);
}

/* One after the other is passed over; those that come later are not. */
static void a_skip_grows_downwards(void **state)
{
	struct recovery_skip s = {0};

	s = recovery_skip_more(&s, 7);
	assert_true(recovery_skips(&s, 7));
	assert_false(recovery_skips(&s, 6));
	assert_false(recovery_skips(&s, 8));
	s = recovery_skip_more(&s, 6);
	assert_true(recovery_skips(&s, 6) && recovery_skips(&s, 7));
	assert_false(recovery_skips(&s, 5) || recovery_skips(&s, 8));
}

static void partners_are_other_hosts_in_a_ring(void **state)
{
	struct partner_node n[4] = {{"a", "h1", false, true, true},
				    {"b", "h1", false, true, true},
				    {"c", "h2", false, true, true},
				    {"d", "h3", false, true, true}};

	assert_int_equal(partner_choose(n, 4, 0), 2); /* b is on the same host */
	assert_int_equal(partner_choose(n, 4, 3), 0);
	n[2].usable = false;
	assert_int_equal(partner_choose(n, 4, 0), 3);
	n[3].keeps = false;
	assert_int_equal(partner_choose(n, 4, 0), PARTNER_NONE);
	/* nodes that one machine plays stand for hosts */
	n[0].local = n[1].local = true;
	assert_int_equal(partner_choose(n, 4, 0), 1);
	/* two entries of one name are one node */
	n[1].name = "a";
	assert_int_equal(partner_choose(n, 4, 0), PARTNER_NONE);
}

static const struct failover_facts quiet = {
    .recorded = JOB_RUNNING, .laid_out = true, .any_node = true};

static void a_quiet_job_goes_on(void **state)
{
	const char *why;
	struct failover_facts f = quiet;

	assert_int_equal(failover_choose(&f, &why), FAILOVER_GO_ON);
	f.recorded = JOB_RESTORING;
	assert_int_equal(failover_choose(&f, &why), FAILOVER_GO_ON);
	f.move_before_go = true;
	assert_int_equal(failover_choose(&f, &why), FAILOVER_GIVE_UP_MOVE);
	assert_null(why);
}

/* Ranks run on only when nothing is in doubt: every doubt alone is enough. */
static void every_doubt_rolls_back(void **state)
{
	for (unsigned bits = 1; bits < 32; bits++) {
		struct failover_facts f = quiet;
		const char *why;

		f.recorded = bits & 1 ? JOB_CLEARING : JOB_RUNNING;
		f.move_went = bits & 2;
		f.broken = bits & 4;
		f.record_outdated = bits & 8;
		f.ranks_on_lost_node = bits & 16;
		assert_int_equal(failover_choose(&f, &why), FAILOVER_ROLL_BACK);
		/* `broken` brings its own sentence, unless something else comes first */
		assert_int_equal(why == NULL, (bits & 4) && !(bits & 3));
	}
}

static void a_decided_end_stays_decided(void **state)
{
	struct failover_facts f = quiet;
	const char *why;

	f.recorded = JOB_ENDING;
	f.broken = f.move_went = true;
	assert_int_equal(failover_choose(&f, &why), FAILOVER_END);
	f.recorded = JOB_ENDED;
	assert_int_equal(failover_choose(&f, &why), FAILOVER_END);
	f.laid_out = false;
	assert_int_equal(failover_choose(&f, &why), FAILOVER_NOTHING_BEGUN);
	f.any_node = false;
	assert_int_equal(failover_choose(&f, &why), FAILOVER_NOTHING_LEFT);
}

/* The agents have left before the head that was killed then. */
static void a_finished_job_ends_as_it_had_ended_whoever_answers(void **state)
{
	for (unsigned bits = 0; bits < 32; bits++) {
		struct failover_facts f = {.recorded = JOB_ENDED, .finished = true};
		const char *why;

		f.laid_out = bits & 1;
		f.any_node = bits & 2;
		f.broken = bits & 4;
		f.ranks_on_lost_node = bits & 8;
		f.move_went = bits & 16;
		assert_int_equal(failover_choose(&f, &why), FAILOVER_END);
		assert_null(why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_finished_job_ends_as_it_had_ended_whoever_answers),
	    cmocka_unit_test(a_node_loss_in_all_combinations),
	    cmocka_unit_test(the_same_death_twice_ends_the_job),
	    cmocka_unit_test(only_used_up_restarts_give_hales_own_status),
	    cmocka_unit_test(the_newest_that_is_reachable_and_not_skipped),
	    cmocka_unit_test(a_skip_grows_downwards),
	    cmocka_unit_test(partners_are_other_hosts_in_a_ring),
	    cmocka_unit_test(a_quiet_job_goes_on),
	    cmocka_unit_test(every_doubt_rolls_back),
	    cmocka_unit_test(a_decided_end_stays_decided),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
