/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's event broker on this host: under the name that the head's broker has on its own
 * machine, which is what HALE_FTB says, ranks and other components of the user find this one. It is
 * below the head's (watch_hosts.c); while the head can't be reached it serves this host alone. */
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ftb/broker.h"
#include "agent/agent_private.h"

/* In each tenth of a second, as in the head (watch.c): ranks share the cores. */
#define WINDOW_SECONDS 0.1
#define SHARE_SECONDS  0.02

struct agent_events {
	struct agent *agent;
	struct broker *broker;
	struct loop_source source;
	struct loop_timer rest;
	double window, spent;
	uint64_t carried; /* bytes to the head that it has not handled */
};

static enum broker_sent carry(void *arg, int to, uint32_t channel, bool up, const void *bytes,
			      size_t len)
{
	struct agent_events *e = arg;

	if (e->carried > 0 && e->carried + len > WATCH_WINDOW)
		return BROKER_LATER;
	e->carried += len;
	agent_send(e->agent,
		   &(struct message){
		       .type = MSG_EVENTS, .id = channel, .flags = up, .bytes = bytes, .len = len});
	return BROKER_SENT;
}

static void handled(void *arg, int from, size_t len)
{
	struct agent_events *e = arg;

	agent_send(e->agent, &(struct message){.type = MSG_EVENTS_TAKEN, .number = len});
}

static void rested(void *arg)
{
	struct agent_events *e = arg;

	loop_change(&e->agent->loop, &e->source, EPOLLIN);
}

static void ready(void *arg, uint32_t events)
{
	struct agent_events *e = arg;
	double now = clock_seconds();

	broker_dispatch(e->broker);
	if (now - e->window > WINDOW_SECONDS) {
		e->window = now;
		e->spent = 0;
	}
	e->spent += clock_seconds() - now;
	if (e->spent < SHARE_SECONDS)
		return;
	loop_change(&e->agent->loop, &e->source, 0);
	loop_timer_set(&e->agent->loop, &e->rest, e->window + WINDOW_SECONDS - now, rested, e);
}

static const char *path_of(const struct agent *a)
{
	static const char name[] = "HALE_FTB=@";

	for (char **e = a->setup.environ; e && *e; e++)
		if (strncmp(*e, name, sizeof(name) - 1) == 0)
			return *e + sizeof(name) - 2;
	return NULL;
}

/* Without it the job goes on, as it does without events. */
void agent_events_start(struct agent *a)
{
	struct agent_events *e = calloc(1, sizeof(*e));
	const struct broker_carrier carrier = {.self = (int)a->setup.node + 1,
					       .count = (int)a->setup.node + 2,
					       .send = carry,
					       .handled = handled,
					       .arg = e};
	const struct broker_options o = {.socket = path_of(a),
					 .node = a->setup.name,
					 .carrier = &carrier,
					 .arity = WATCH_ARITY,
					 .heartbeat = WATCH_HEARTBEAT,
					 .dead = WATCH_DEAD};
	struct error err;

	if (!e || !o.socket) {
		free(e);
		return;
	}
	e->agent = a;
	e->source.fd = -1;
	if (broker_create(&o, &e->broker, &err) == HALE_OK &&
	    loop_add(&a->loop, &e->source, broker_fd(e->broker), EPOLLIN, ready, e)) {
		a->events = e;
		return;
	}
	/* two of a job's hosts are one machine: then the other one, or the head, serves both */
	log_info("no event broker of its own here: %s", e->broker ? "no room" : err.text);
	broker_destroy(e->broker);
	free(e);
}

void agent_events_stop(struct agent *a)
{
	struct agent_events *e = a->events;

	if (!e)
		return;
	a->events = NULL;
	loop_timer_clear(&a->loop, &e->rest);
	loop_remove(&a->loop, &e->source);
	broker_destroy(e->broker);
	free(e);
}

/* What was carried to another head nobody acknowledges any more. */
void agent_events_renew(struct agent *a)
{
	if (!a->events)
		return;
	a->events->carried = 0;
	broker_room(a->events->broker);
}

void agent_events_take(struct agent *a, const struct message *m)
{
	struct agent_events *e = a->events;

	if (!e)
		return;
	if (m->type == MSG_EVENTS_TAKEN) {
		e->carried -= m->number < e->carried ? m->number : e->carried;
		broker_room(e->broker);
	} else if (!broker_carry(e->broker, 0, m->id, m->flags != 0, m->bytes, m->len)) {
		handled(e, 0, m->len);
	}
}
