/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's event broker has one on each of its hosts below it, in the agents (agent_events.c).
 * What they say to each other goes through the sessions of head and agents, at most WATCH_WINDOW
 * bytes a way and host that the other end has not handled yet. */
#include <stdlib.h>
#include "base/base.h"
#include "head/head_private.h"
#include "head/watch/watch_private.h"

static enum broker_sent carry(void *arg, int to, uint32_t channel, bool up, const void *bytes,
			      size_t len)
{
	struct watch *w = arg;
	uint32_t k = (uint32_t)to - 1;

	if (to < 1 || k >= w->head->node_set.count || w->head->node_set.nodes[k].state == NODE_LOST)
		return BROKER_GONE;
	if (w->carried[k] > 0 && w->carried[k] + len > WATCH_WINDOW)
		return BROKER_LATER;
	w->carried[k] += len;
	node_set_tell(
	    &w->head->node_set, k,
	    &(struct message){
		.type = MSG_EVENTS, .id = channel, .flags = up, .bytes = bytes, .len = len});
	return BROKER_SENT;
}

static void handled(void *arg, int from, size_t len)
{
	struct watch *w = arg;

	node_set_tell(&w->head->node_set, (uint32_t)from - 1,
		      &(struct message){.type = MSG_EVENTS_TAKEN, .number = len});
}

bool watch_carrier(struct watch *w, struct broker_carrier *c, const char ***names)
{
	const struct node_set *node_set = &w->head->node_set;

	if (!node_set->config.hosts || node_set->count + 1 > 2 * WATCH_ARITY)
		return false;
	w->carried = calloc(node_set->count, sizeof(*w->carried));
	*names = calloc(node_set->count + 1, sizeof(**names));
	if (!w->carried || !*names) {
		free(w->carried);
		w->carried = NULL;
		return false;
	}
	(*names)[0] = w->head->id.node;
	for (uint32_t k = 0; k < node_set->count; k++)
		(*names)[k + 1] = node_set->nodes[k].name;
	*c = (struct broker_carrier){.self = 0,
				     .count = (int)node_set->count + 1,
				     .names = *names,
				     .send = carry,
				     .handled = handled,
				     .arg = w};
	return true;
}

bool watch_serves_hosts(const struct head *h)
{
	return h->watch && h->watch->broker && h->watch->carried;
}

void watch_carried(void *head, const struct node *n, const struct message *m)
{
	struct head *h = head;
	struct watch *w = h->watch;

	if (!watch_serves_hosts(h))
		return;
	if (m->type == MSG_EVENTS_TAKEN) {
		w->carried[n->index] -=
		    m->number < w->carried[n->index] ? m->number : w->carried[n->index];
		broker_room(w->broker);
	} else if (!broker_carry(w->broker, (int)n->index + 1, m->id, m->flags != 0, m->bytes,
				 m->len)) {
		handled(w, (int)n->index + 1, m->len);
	}
}

void watch_node_renewed(struct head *h, const struct node *n)
{
	struct watch *w = h->watch;

	if (!watch_serves_hosts(h))
		return;
	w->carried[n->index] = 0;
	broker_room(w->broker);
}
