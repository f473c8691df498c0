/* SPDX-License-Identifier: BSD-3-Clause */
/* When is a node lost? When it is certain that none of its ranks runs and that none will: because
 * its agent has said so, because the end of a local agent's socket proves it, or because its lease
 * has run out (lease.h, docs/nodes.md). Until then it only looks as if. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include "base/base.h"
#include "head/nodes/node_set.h"
#include "head/nodes/node_set_private.h"
#include "wire/lease/lease.h"
#include "wire/lease/lease.h"

#define LATE_NS 250000000ull

bool node_set_leased(const struct node_set *c)
{
	return c->config.setup.lease_ns != 0;
}

static uint64_t term(const struct node_set *c)
{
	return c->config.setup.lease_ns;
}

static void silent(void *arg);

/* (Re)arms the timer; a lease that was never given is no reason to wait. */
static void wait_for_lease(struct node *n)
{
	uint64_t at = lease_lost_at(term(n->node_set), n->lease.granted_at), now = lease_clock();

	loop_timer_set(n->node_set->loop, &n->lease.lost, at > now ? (double)(at - now) * 1e-9 : 0,
		       silent, n);
}

/* This head was stopped, and wakes up. Somebody else may have the job; and if not, the ranks have
 * stood still as well, and get another term to be heard. */
static bool stood_still(struct node *n)
{
	uint64_t at = lease_lost_at(term(n->node_set), n->lease.granted_at);

	if (!n->node_set->handler.may_grant(n->node_set->handler.arg))
		return true;
	if (lease_clock() < at + LATE_NS)
		return false;
	node_set_lease_extend(n);
	return true;
}

static void silent(void *arg)
{
	struct node *n = arg;
	char why[sizeof(n->end.why) + 64];

	if (lease_lost_at(term(n->node_set), n->lease.granted_at) > lease_clock()) {
		wait_for_lease(n);
		return;
	}
	if (n->node_set->config.setup.grace_ns && stood_still(n))
		return;
	snprintf(why, sizeof(why), "%s%sno word from it for %.1f s", n->end.why,
		 n->end.why[0] ? ", " : "", (double)(lease_clock() - n->lease.granted_at) * 1e-9);
	node_set_lose(n, why);
}

/* Never to a node that is taken for lost, or whose session is over. */
void node_set_lease_asked(struct node *n, uint64_t number)
{
	if (!node_set_leased(n->node_set) || n->state == NODE_LOST || n->end.bye)
		return;
	n->lease.asked = number;
	/* what is looked at after the ask has come holds for what the ask is answered with */
	if (n->node_set->adopting || !n->node_set->handler.may_grant(n->node_set->handler.arg))
		return;
	n->lease.asked = 0;
	n->lease.granted_at = lease_clock();
	node_send(n, &(struct message){.type = MSG_LEASE, .number = number});
	node_set_order_again(n);
	wait_for_lease(n);
}

void node_set_lease_extend(struct node *n)
{
	if (n->lease.granted_at == 0 || !node_usable(n))
		return;
	n->lease.granted_at = lease_clock();
	wait_for_lease(n);
}

/* The supervisor of a local agent keeps the socket open until no rank is left; should somebody have
 * killed it too, we see to it ourselves: it is the same machine. */
static void end_local_ranks(const struct node *n)
{
	const struct node_set *c = n->node_set;

	for (uint32_t r = 0; r < c->nranks; r++) {
		pid_t group = c->ranks[r].group;
		/* who has the id of a rank that has ended is somebody else */
		bool strange = c->ranks[r].pid == 0 && group > 0 && kill(group, 0) == 0;

		if (c->laid_out && c->placement.node_of[r] == n->index && group > 0 && !strange)
			kill(-group, SIGKILL);
	}
}

void node_set_session_over(void *node, const char *why)
{
	struct node *n = node;

	if (n->node_set->leaving || n->node_set->abandoned || n->state == NODE_LOST)
		return;
	if (n->node_set->adopting) {
		node_set_adopt_over(n, why);
		return;
	}
	if (!n->end.bye)
		snprintf(n->end.why, sizeof(n->end.why), "%s", why);
	if (n->state == NODE_STARTING && !n->local)
		node_set_launcher_failed(n);
	if (n->local)
		end_local_ranks(n);
	/* the watchdog has the socket, too, until it has killed what it will */
	n->end.proven = n->local && n->agent.group > 0 && n->session.by_peer;
	/* the end of a launcher's pipe says nothing about the ranks at its other end */
	if (n->local || n->end.bye || n->state == NODE_STARTING || n->lease.granted_at == 0)
		node_set_lose(n, n->end.why);
	else
		wait_for_lease(n);
}

void node_set_lose(struct node *n, const char *why)
{
	struct node_set *c = n->node_set;
	char text[sizeof(n->end.why) + 64];

	snprintf(text, sizeof(text), "%s", why);
	n->state = NODE_LOST;
	loop_timer_clear(c->loop, &n->lease.lost);
	loop_timer_clear(c->loop, &n->attach.again);
	loop_timer_clear(c->loop, &n->end.closes);
	session_close(&n->session);
	/* it leads a group, in which a launcher's own children are, too */
	if (n->agent.pid > 0)
		kill(-n->agent.pid, SIGKILL);
	for (uint32_t r = 0; c->laid_out && r < c->nranks; r++) {
		if (c->placement.node_of[r] != n->index)
			continue;
		c->ranks[r].pid = 0;
		c->ranks[r].spawning = false;
		node_set_order_done(&c->ranks[r]);
		if (r == 0)
			stdin_spool_close(&c->stdin_spool);
	}
	c->handler.lost(c->handler.arg, n, text);
	node_set_answers(c);
	node_set_all_ready(c);
}
