/* SPDX-License-Identifier: BSD-3-Clause */
/* Single decisions of the head, of heads that have no agents. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/shadows.h"

struct head_fixture {
	struct options o;
	struct head h;
	struct program program;
	char dir[64], good[128], bad[128];
};

static int set_up(void **state)
{
	struct head_fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "/tmp/hale-head-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->good, sizeof(f->good), "%s/file", f->dir);
	snprintf(f->bad, sizeof(f->bad), "%s/none/file", f->dir);
	f->h.up = &head_calls;
	f->h.o = &f->o;
	f->h.program = &f->program;
	snprintf(f->h.id.job, sizeof(f->h.id.job), "job.1");
	f->o.ckpt_dir = f->dir;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct head_fixture *f = *state;

	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

/* ---- what a job will have to write ---- */

static void files_that_can_be_written_let_a_job_begin(void **state)
{
	struct head_fixture *f = *state;
	struct error err;

	assert_int_equal(head_probe(&f->h, &err), HALE_OK);
	f->o.report = f->o.profile = f->good;
	f->o.ckpt_every = 10;
	assert_int_equal(head_probe(&f->h, &err), HALE_OK);
	assert_ptr_equal(f->o.report, f->good);
}

/* Whatever else can be written. */
static void a_report_that_cannot_be_written_is_refused(void **state)
{
	struct head_fixture *f = *state;
	struct error err;

	for (int others = 0; others < 4; others++) {
		f->o.report = f->bad;
		f->o.profile = others & 1 ? f->good : NULL;
		f->o.ckpt_every = others & 2 ? 10 : 0;
		assert_int_equal(head_probe(&f->h, &err), HALE_ERR_ARGUMENT);
		assert_non_null(strstr(err.text, "report"));
		assert_non_null(strstr(err.text, f->bad));
		assert_null(f->o.report); /* the end of the job does not say it again */
	}
}

static void a_profile_that_cannot_be_written_is_refused(void **state)
{
	struct head_fixture *f = *state;
	struct error err;

	for (int others = 0; others < 4; others++) {
		f->o.report = others & 1 ? f->good : NULL;
		f->o.profile = f->bad;
		f->o.ckpt_every = others & 2 ? 10 : 0;
		assert_int_equal(head_probe(&f->h, &err), HALE_ERR_ARGUMENT);
		assert_non_null(strstr(err.text, "profile"));
	}
}

static void checkpoints_that_cannot_be_kept_are_refused_where_some_are_wanted(void **state)
{
	struct head_fixture *f = *state;
	struct error err;

	f->o.ckpt_dir = "/proc/none/at/all";
	assert_int_equal(head_probe(&f->h, &err), HALE_OK);
	f->o.ckpt_every = 10;
	f->o.report = f->good;
	assert_int_equal(head_probe(&f->h, &err), HALE_ERR_STORE);
	assert_non_null(strstr(err.text, "/proc/none/at/all"));
}

/* ---- shadows ---- */

/* The head ends a shadow that has jumped, and its next copy takes that place: from then on, not
 * from when the jump is over, the death of the copy is a failure. */
static void a_shadow_that_was_ended_and_has_come_back_may_die(void **state)
{
	struct head_fixture *f = *state;
	struct head_shadow of[2] = {{.stopped = true}, {.stopped = true}};
	struct head_rank ranks[2] = {{.exit_status = 137}, {.exit_status = 137}};

	f->h.shadows.of = of;
	f->h.ranks = ranks;
	f->h.state = JOB_ENDING; /* nobody comes back now */
	assert_true(shadows_ended(&f->h, 1, SIGKILL));
	assert_int_equal(ranks[1].exit_status, 0);
	shadows_lives(&f->h, 1);
	ranks[1].exit_status = 137;
	assert_false(shadows_ended(&f->h, 1, SIGKILL));
	assert_int_equal(ranks[1].exit_status, 137);
	assert_true(shadows_ended(&f->h, 0, SIGKILL));
	f->h.shadows.of = NULL;
	f->h.ranks = NULL;
}

/* ---- checkpoints that are asked for ---- */

static void a_job_that_ends_takes_no_checkpoint(void **state)
{
	struct head_fixture *f = *state;
	struct error err;

	for (int origin = ORIGIN_TIMER; origin <= ORIGIN_RULE; origin++) {
		for (int s = JOB_ENDING; s <= JOB_ENDED; s++) {
			f->h.state = (job_state_t)s;
			assert_int_equal(checkpoint_request(&f->h, (ckpt_origin_t)origin, &err),
					 HALE_ERR_STATE);
			assert_non_null(strstr(err.text, "the job is ending"));
			assert_false(f->h.ckpt.wanted);
		}
	}
}

static void a_checkpoint_is_remembered_until_the_job_can_take_it(void **state)
{
	static const job_state_t states[] = {JOB_STARTING, JOB_CLEARING, JOB_RESTORING};
	struct head_fixture *f = *state;
	struct error err;

	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		f->h.state = states[i];
		f->h.ckpt.wanted = false;
		assert_int_equal(checkpoint_request(&f->h, ORIGIN_RULE, &err), HALE_OK);
		assert_true(f->h.ckpt.wanted);
		assert_int_equal(f->h.ckpt.origin, ORIGIN_RULE);
		assert_int_equal(f->h.ckpt.phase, CKPT_IDLE);
	}
}

/* Unless its images stay on the disks of nodes, and somebody wants them in the shared folder. */
static void the_checkpoint_under_way_serves_those_who_ask_for_one(void **state)
{
	struct head_fixture *f = *state;
	struct checkpoint *c = &f->h.ckpt;
	struct error err;

	f->h.state = JOB_RUNNING;
	c->phase = CKPT_CAPTURING;
	c->origin = ORIGIN_TIMER;
	assert_int_equal(checkpoint_request(&f->h, ORIGIN_USER, &err), HALE_OK);
	assert_false(c->wanted || c->shared);
	f->h.levels.on = true;
	assert_int_equal(checkpoint_request(&f->h, ORIGIN_PROGRAM, &err), HALE_OK);
	assert_false(c->wanted || c->shared);
	assert_int_equal(c->origin, ORIGIN_TIMER);
	assert_int_equal(checkpoint_request(&f->h, ORIGIN_USER, &err), HALE_OK);
	assert_true(c->shared && !c->wanted); /* a full one can still go there */
	assert_int_equal(c->origin, ORIGIN_USER);
	c->shared = false;
	c->base = 3;
	assert_int_equal(checkpoint_request(&f->h, ORIGIN_RULE, &err), HALE_OK);
	assert_true(c->wanted && !c->shared); /* a difference can't: another one follows */
	c->wanted = false;
	c->phase = CKPT_CHECKING;
	assert_int_equal(checkpoint_request(&f->h, ORIGIN_RULE, &err), HALE_OK);
	assert_true(c->shared && !c->wanted);
}

static void a_user_hears_why_there_can_be_no_checkpoint_now(void **state)
{
	struct head_fixture *f = *state;
	struct head_rank rank = {0};
	struct node_set_rank member = {0};
	struct error err;

	f->h.state = JOB_RUNNING;
	f->h.nranks = 1;
	f->h.ranks = &rank;
	f->h.node_set.ranks = &member;
	assert_int_equal(checkpoint_request(&f->h, ORIGIN_USER, &err), HALE_ERR_STATE);
	assert_non_null(strstr(err.text, "--no-mpi"));
	assert_false(f->h.ckpt.wanted);
	f->h.mpi_seen = true;
	assert_int_equal(checkpoint_request(&f->h, ORIGIN_USER, &err), HALE_ERR_STATE);
	assert_non_null(strstr(err.text, "MPI_Init"));
	/* the program itself, and rules, have it as soon as it can be */
	assert_int_equal(checkpoint_request(&f->h, ORIGIN_RULE, &err), HALE_OK);
	assert_true(f->h.ckpt.wanted);
	assert_int_equal(f->h.ckpt.phase, CKPT_IDLE);
}

int main(void)
{
#define WITH_HEAD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    WITH_HEAD(files_that_can_be_written_let_a_job_begin),
	    WITH_HEAD(a_report_that_cannot_be_written_is_refused),
	    WITH_HEAD(a_profile_that_cannot_be_written_is_refused),
	    WITH_HEAD(checkpoints_that_cannot_be_kept_are_refused_where_some_are_wanted),
	    WITH_HEAD(a_shadow_that_was_ended_and_has_come_back_may_die),
	    WITH_HEAD(a_job_that_ends_takes_no_checkpoint),
	    WITH_HEAD(a_checkpoint_is_remembered_until_the_job_can_take_it),
	    WITH_HEAD(the_checkpoint_under_way_serves_those_who_ask_for_one),
	    WITH_HEAD(a_user_hears_why_there_can_be_no_checkpoint_now),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
