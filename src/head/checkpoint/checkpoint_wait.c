/* SPDX-License-Identifier: BSD-3-Clause */
/* A checkpoint that has to wait: a rank has child processes, which no image holds. It is looked for
 * a moment without any until --ckpt-wait is over. And since when the job goes without a new
 * checkpoint, whatever the reason. */
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"

/* Moments without a child may be short: so the looks come close to each other at first. */
#define LOOK_FIRST_SECONDS 0.01
#define LOOK_MOST_SECONDS  0.1

static void look_again(void *arg)
{
	checkpoint_poll(arg);
}

bool checkpoint_wait(struct head *h, const struct error *err)
{
	struct checkpoint *c = &h->ckpt;
	double now = clock_seconds(), waited;
	char text[16];

	if (c->wait.since == 0) {
		c->wait.since = now;
		c->wait.look = LOOK_FIRST_SECONDS;
	}
	waited = now - c->wait.since;
	if (waited >= h->o->ckpt_wait) {
		c->wait.since = 0;
		return false;
	}
	if (!c->wait.said && h->o->ckpt_wait > 0 && waited > 0)
		head_say(h,
			 "a checkpoint waits for a moment without %s, for %s at most "
			 "(--ckpt-wait): %s",
			 strstr(err->text, "child process") ? "child processes" : "that",
			 units_show_seconds(h->o->ckpt_wait, text), err->text);
	c->wait.said = c->wait.said || waited > 0;
	loop_timer_set(&h->loop, &c->wait.again, c->wait.look, look_again, h);
	c->wait.look = c->wait.look * 2 < LOOK_MOST_SECONDS ? c->wait.look * 2 : LOOK_MOST_SECONDS;
	return true;
}

void checkpoint_look_again(struct head *h)
{
	loop_timer_set(&h->loop, &h->ckpt.wait.again, LOOK_FIRST_SECONDS, look_again, h);
}

void checkpoint_wait_end(struct head *h)
{
	h->ckpt.wait.since = 0;
	loop_timer_clear(&h->loop, &h->ckpt.wait.again);
}

static void end_unprotected(void *arg)
{
	struct head *h = arg;

	if (job_state_over(h->state))
		return;
	head_say(h, "the job ends, since it would go on unprotected (--require-checkpoints): %s",
		 h->report.unprotected.why);
	head_end(h, EXIT_UNPROTECTED);
}

void checkpoint_unprotected(struct head *h, const char *why)
{
	struct report_unprotected *u = &h->report.unprotected;

	if (!u->is)
		u->since_seconds = head_seconds(h);
	u->is = true;
	snprintf(u->why, sizeof(u->why), "%s", why);
	/* not here: whoever gives the checkpoint up is not through with it */
	if (h->o->ckpt_required)
		loop_timer_set(&h->loop, &h->ckpt.wait.required, 0, end_unprotected, h);
}

void checkpoint_protected(struct head *h)
{
	checkpoint_wait_end(h);
	h->report.unprotected.is = false;
}
