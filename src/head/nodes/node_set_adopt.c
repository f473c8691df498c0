/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents that another head has started, and that have a new one now (docs/attach.md). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "base/base.h"
#include "head/nodes/node_set.h"
#include "head/nodes/node_set_private.h"
#include "head/failover/takeover.h"

#define AGAIN_LOCAL 0.02
#define AGAIN_FAR   0.25
#define AGAIN_MOST  2.0

/* fd -1 and a reason in n->why: there is nobody to ask. */
static hale_status_t reach(struct node *n, int *fd, struct error *err)
{
	const struct node_set *c = n->node_set;

	if (!n->local)
		return node_set_launcher_start(n, fd, err);
	*fd = attach_connect(c->config.setup.tag, n->index);
	/* the supervisor, which ends last, has that socket too */
	n->end.gone = *fd < 0 && errno == ECONNREFUSED;
	if (n->end.gone)
		snprintf(n->end.why, sizeof(n->end.why), "its agent is not there any more");
	else if (*fd < 0)
		return error_sys(err, HALE_ERR_NODE, "its agent can't be asked");
	return HALE_OK;
}

static hale_status_t ask(struct node *n, struct error *err)
{
	struct node_set *c = n->node_set;
	int fd = -1;
	hale_status_t status = reach(n, &fd, err);

	if (status != HALE_OK)
		return status;
	if (fd < 0) {
		c->handler.no_answer(c->handler.arg, n, n->end.why);
		return HALE_OK;
	}
	status = node_set_session_add(n, fd, err);
	session_send(&n->session,
		     &(struct message){.type = MSG_ATTACH, .id = c->config.setup.epoch});
	return status;
}

static void ask_now(struct node *n)
{
	struct error err;

	if (ask(n, &err) != HALE_OK)
		node_set_adopt_over(n, err.text);
}

/* Whoever is asked in the moment in which its agent dies is not gone: there is another one a moment
 * later, at the same socket. A launcher may fail once, too. So all are asked again until the time
 * is over in which an answer would count (takeover.c). */
static void ask_again(void *arg)
{
	struct node *n = arg;

	if (!n->node_set->adopting || n->attach.done || n->state == NODE_LOST ||
	    session_is_open(&n->session))
		return;
	if (!n->local && n->agent.pid > 0) /* the launcher of the last time */
		kill(-n->agent.pid, SIGKILL);
	ask_now(n);
}

static void ask_later(struct node *n)
{
	double in = n->attach.again_in > 0 ? n->attach.again_in
		    : n->local		   ? AGAIN_LOCAL
					   : AGAIN_FAR;

	n->attach.again_in = 2 * in < AGAIN_MOST ? 2 * in : AGAIN_MOST;
	loop_timer_set(n->node_set->loop, &n->attach.again, in, ask_again, n);
}

hale_status_t node_set_adopt(struct node_set *c, struct loop *loop,
			     const struct node_set_config *config,
			     const struct node_set_handler *handler, const struct node *nodes,
			     uint32_t count, struct error *err)
{
	hale_status_t status;

	c->config = *config;
	c->handler = *handler;
	c->loop = loop;
	c->adopting = true;
	c->nodes = calloc(count, sizeof(*c->nodes));
	if (!c->nodes)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for the nodes");
	c->count = count;
	if (config->hosts || count > 1)
		c->config.setup.lease_ns = (uint64_t)(config->node_timeout * 1e9);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	status = node_set_ranks_create(c, err);
	for (uint32_t k = 0; k < count; k++) {
		struct node *n = &c->nodes[k];

		*n = nodes[k];
		n->node_set = c;
		n->index = k;
		n->local = config->hosts == NULL;
		n->spare = n->state == NODE_SPARE;
		n->session.in_fd = n->session.out_fd = -1;
		n->session.in.fd = n->session.out.fd = -1;
		n->session.loop = loop;
		if (n->state != NODE_LOST)
			n->state = NODE_STARTING;
	}
	for (uint32_t k = 0; status == HALE_OK && k < count; k++)
		if (c->nodes[k].state == NODE_STARTING)
			ask_now(&c->nodes[k]);
	return status;
}

void node_set_adopt_over(struct node *n, const char *why)
{
	struct node_set *c = n->node_set;

	n->attach.done = false;
	snprintf(n->end.why, sizeof(n->end.why), "%s", why);
	n->end.gone = n->end.bye;
	if (!n->end.bye)
		ask_later(n);
	c->handler.no_answer(c->handler.arg, n, n->end.why);
}

void node_set_adopt_take(struct node *n, const struct message *m)
{
	struct node_set *c = n->node_set;

	if (m->type == MSG_SUPERSEDED) {
		c->handler.superseded(c->handler.arg, m->id);
	} else if (c->adopting && !n->attach.done &&
		   m->len == sizeof(struct attach_node) + c->nranks * sizeof(struct attach_rank)) {
		n->attach.done = true;
		n->attach.again_in = 0;
		c->handler.attached(c->handler.arg, n, m);
	}
}

static void tell_addresses(struct node_set *c)
{
	for (struct node_set_address *a = c->addresses, *next; a; a = next) {
		next = a->next;
		node_set_tell_all(c, &(struct message){.type = MSG_ADDRESS,
						       .id = c->generation,
						       .rank = a->rank,
						       .bytes = a->bytes,
						       .len = a->len});
		free(a);
	}
	c->addresses = NULL;
}

/* Leases that were asked for meanwhile are granted: before anything is commanded. */
void node_set_adopted(struct node_set *c)
{
	c->adopting = false;
	c->announced = true;
	for (uint32_t k = 0; k < c->count; k++) {
		struct node *n = &c->nodes[k];

		if (n->attach.done && n->lease.asked)
			node_set_lease_asked(n, n->lease.asked);
	}
	tell_addresses(c);
}

void node_set_lost_for_good(struct node *n, const char *why)
{
	node_set_lose(n, why);
}

void node_set_refuse_asks(struct node_set *c)
{
	node_set_checkpoint_refuse(c);
}

/* Where ranks can be reached, those nodes want to know, too, that have not answered yet. */
void node_set_adopt_address(struct node_set *c, const struct message *m)
{
	struct node_set_address *a = malloc(sizeof(*a) + m->len);

	if (!a)
		return;
	a->rank = m->rank;
	a->len = m->len;
	memcpy(a->bytes, m->bytes, m->len);
	a->next = c->addresses;
	c->addresses = a;
}

void node_set_abandon(struct node_set *c)
{
	c->abandoned = true;
	for (uint32_t k = 0; k < c->count; k++) {
		loop_timer_clear(c->loop, &c->nodes[k].lease.lost);
		loop_timer_clear(c->loop, &c->nodes[k].attach.again);
		session_close(&c->nodes[k].session);
	}
}
