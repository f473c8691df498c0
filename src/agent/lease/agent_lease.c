/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the ranks of this node may run: asks the head for the lease, four times as often as
 * needed, and fences the node when it has run out. The supervisor has the same deadline, for the
 * case that this process can't act. */
#include <signal.h>
#include <stdio.h>
#include "base/base.h"
#include "agent/agent_private.h"

enum { ASKS_A_TERM = 4 };

static uint64_t ask(struct agent *a)
{
	uint64_t number = lease_ask(&a->lease.held, lease_clock());

	agent_send(a, &(struct message){.type = MSG_ASK, .number = number});
	return number;
}

/* Where another head may come the ranks aren't ended, but stand still until there is a lease again,
 * which is one that was asked for from now on. */
static void freeze(struct agent *a)
{
	log_info("nothing was heard of a head for too long: the ranks of this node stand still");
	agent_pause(a, true);
	a->lease.frozen = a->lease.resuming = true;
	a->lease.resume_from = ask(a);
	agent_wait_for_head(a);
}

static void fence(struct agent *a)
{
	char why[128];

	snprintf(why, sizeof(why), "it heard nothing of hale run for %.1f s",
		 (double)a->setup.lease_ns * 1e-9);
	agent_fence(a, why);
}

static void out_of_time(void *arg)
{
	struct agent *a = arg;

	if (a->setup.grace_ns ? a->lease.paused : agent_lease_holds(a))
		return;
	if (a->setup.grace_ns && !supervisor_over(&a->supervisor))
		freeze(a);
	else
		fence(a);
}

static void arm(struct agent *a)
{
	uint64_t now = lease_clock(), until = a->lease.held.until;

	supervisor_lease(&a->supervisor, until);
	/* to have them stand still before the supervisor, which can only kill, has a reason to */
	if (a->setup.grace_ns)
		until -= a->lease.held.term / 8;
	loop_timer_set(&a->loop, &a->lease.fence, until > now ? (double)(until - now) * 1e-9 : 0,
		       out_of_time, a);
}

static void ask_again(void *arg)
{
	struct agent *a = arg;

	ask(a);
	loop_timer_set(&a->loop, &a->lease.ask, (double)a->lease.held.term * 1e-9 / ASKS_A_TERM,
		       ask_again, a);
}

void agent_lease_start(struct agent *a)
{
	a->lease.held.term = a->setup.lease_ns;
	if (a->lease.held.term)
		ask_again(a);
}

/* Asks at once, so that what is left of the lease need not be known well. */
void agent_lease_again(struct agent *a)
{
	if (a->lease.held.term == 0)
		return;
	ask_again(a);
	if (!a->lease.paused && a->lease.held.until > 0)
		arm(a);
}

/* Frozen ranks go on by an answer to this ask, or a later one. */
void agent_lease_renew(struct agent *a)
{
	if (a->lease.held.term == 0)
		return;
	if (a->lease.frozen)
		a->lease.resume_from = a->lease.held.asked + 1;
	ask_again(a);
}

void agent_lease_stop(struct agent *a)
{
	loop_timer_clear(&a->loop, &a->lease.ask);
	loop_timer_clear(&a->loop, &a->lease.fence);
}

static void go_on(struct agent *a)
{
	a->lease.paused = a->lease.resuming = a->lease.frozen = false;
	loop_timer_clear(&a->loop, &a->heads.alone);
	a->heads.alone_until = 0;
	agent_signal_all(a, SIGCONT);
}

/* A grant that is late is none: the supervisor may have acted. */
void agent_lease_granted(struct agent *a, uint64_t number)
{
	if (a->lease.held.term == 0 || !lease_grant(&a->lease.held, number))
		return;
	/* it has, while this process stood still: no lease brings the ranks of this node back */
	if (supervisor_over(&a->supervisor)) {
		fence(a);
		return;
	}
	if (a->lease.paused && !(a->lease.resuming && number >= a->lease.resume_from)) {
		lease_drop(&a->lease.held);
		return;
	}
	arm(a);
	if (a->lease.resuming && agent_lease_holds(a))
		go_on(a);
}

/* Ranks that are stopped need no lease, and the head that is stopped too can't give one. They go on
 * only with a lease that was asked for after the pause: the head may have given them up meanwhile.
 */
void agent_pause(struct agent *a, bool pause)
{
	if (pause) {
		a->lease.paused = true;
		a->lease.resuming = false;
		agent_signal_all(a, SIGSTOP);
		lease_drop(&a->lease.held);
		loop_timer_clear(&a->loop, &a->lease.fence);
		supervisor_lease(&a->supervisor, 0);
	} else if (a->lease.held.term == 0) {
		go_on(a);
	} else if (a->lease.paused) {
		a->lease.resuming = true;
		a->lease.resume_from = ask(a);
	}
}
