/* SPDX-License-Identifier: BSD-3-Clause */
/* FTB-IB: InfiniBand adapters and their ports. Events and payloads: seed 001, appendix A.
 *
 * Lines of a reading:
 *   adapters COUNT                            all of them follow; one that doesn't is gone
 *   adapter INDEX NAME PORTS
 *   port INDEX PORT STATE LID SM_LID PKEYS    STATE is DOWN INIT ARMED ACTIVE; PKEYS any number
 *                                             that changes with the table; "-" is unknown
 *   errors INDEX PORT NAME COUNT              a counter that should stay
 *   event INDEX PORT NAME                     PORT_ERR PORT_ACTIVE LID_CHANGE PKEY_CHANGE SM_CHANGE
 *                                             DEVICE_FATAL, as the adapter says it
 * An event and the reading after it tell the same: whichever comes second is nothing new. */
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "monitor/kind.h"

enum { ADAPTERS_MAX = 32, PORTS_MAX = 64, COUNTERS_MAX = 4 };
enum { DEGRADING_ERRORS = 10, DEGRADING_SECONDS = 60 };

enum port_state { PORT_UNKNOWN, PORT_DOWN, PORT_INIT, PORT_ARMED, PORT_ACTIVE, PORT_STATES };
enum property { PROPERTY_LID, PROPERTY_SM, PROPERTY_PKEY, PROPERTY_COUNT };

static const char *const state_names[PORT_STATES] = {"", "DOWN", "INIT", "ARMED", "ACTIVE"};
static const char *const property_events[PROPERTY_COUNT] = {
    "FTB_IB_EVENT_LID_CHANGE", "FTB_IB_EVENT_SM_CHANGE", "FTB_IB_EVENT_PKEY_CHANGE"};

struct counter {
	char name[32];
	uint64_t base; /* since `since`; what came before is old */
	double since;
};

struct port {
	enum port_state state;
	bool known[PROPERTY_COUNT],
	    announced[PROPERTY_COUNT]; /* by an event, not yet by a reading */
	uint64_t value[PROPERTY_COUNT];
	struct counter counters[COUNTERS_MAX];
};

struct adapter {
	bool there, seen, fatal;
	int ports;
	struct port port[PORTS_MAX + 1];
};

struct ib_state {
	bool told;	   /* whether there are adapters */
	bool listing;	   /* this reading has an `adapters` line, */
	int listed, count; /* with this number; that of the reading before */
	struct adapter adapters[ADAPTERS_MAX];
};

static void port_publish(const struct judge *j, const char *name, monitor_severity_t severity,
			 int i, int port)
{
	judge_publish(j, name, severity, "ADAPTER:%d::PORT:%d", i, port);
}

static void device_fatal(struct judge *j, int i)
{
	struct ib_state *s = j->state;

	if (s->adapters[i].fatal)
		return;
	s->adapters[i].fatal = true;
	judge_publish(j, "FTB_IB_EVENT_DEVICE_FATAL", MONITOR_INFO, "ADAPTER:%d", i);
}

static void port_changes(struct judge *j, int i, int number, enum port_state to)
{
	struct ib_state *s = j->state;
	struct port *p = &s->adapters[i].port[number];
	enum port_state from = p->state;

	p->state = to;
	if (from == to)
		return;
	if (from == PORT_ACTIVE)
		port_publish(j, "FTB_IB_PORT_ERR", MONITOR_ERROR, i, number);
	else if (to == PORT_ACTIVE && from != PORT_UNKNOWN)
		port_publish(j, "FTB_IB_PORT_ACTIVE", MONITOR_INFO, i, number);
	else
		judge_publish(j, "FTB_IB_PORT_INFO", MONITOR_INFO, "ADAPTER:%d::PORT:%d::STATE:%s",
			      i, number, state_names[to]);
}

static void property_is(struct judge *j, int i, int number, enum property k, const char *word)
{
	struct ib_state *s = j->state;
	struct port *p = &s->adapters[i].port[number];
	uint64_t value;

	if (!line_count(word, &value))
		return;
	if (p->known[k] && p->value[k] != value && !p->announced[k])
		port_publish(j, property_events[k], MONITOR_INFO, i, number);
	p->announced[k] = false;
	p->known[k] = true;
	p->value[k] = value;
}

/* Errors that rise foretell a port that fails (seed 001, figure 3.3, "prediction"). */
static void errors_are(struct judge *j, int i, int number, const char *name, uint64_t count)
{
	struct ib_state *s = j->state;
	struct port *p = &s->adapters[i].port[number];
	struct counter *c = p->counters, *end = c + COUNTERS_MAX;

	while (c < end && c->name[0] && strcmp(c->name, name) != 0)
		c++;
	if (c == end)
		return;
	if (c->name[0] && count >= c->base + DEGRADING_ERRORS)
		judge_publish(j, "FTB_IB_PORT_DEGRADING", MONITOR_WARNING,
			      "ADAPTER:%d::PORT:%d::COUNTER:%s::COUNT:%llu", i, number, name,
			      (unsigned long long)(count - c->base));
	else if (c->name[0] && count >= c->base && j->now - c->since <= DEGRADING_SECONDS)
		return; /* the window goes on */
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->base = count;
	c->since = j->now;
}

static void event_is(struct judge *j, int i, int number, const char *name)
{
	static const char *const names[PROPERTY_COUNT] = {"LID_CHANGE", "SM_CHANGE", "PKEY_CHANGE"};
	struct ib_state *s = j->state;
	struct port *p = &s->adapters[i].port[number];

	if (!strcmp(name, "DEVICE_FATAL"))
		device_fatal(j, i);
	else if (!strcmp(name, "PORT_ACTIVE"))
		port_changes(j, i, number, PORT_ACTIVE);
	else if (!strcmp(name, "PORT_ERR") && p->state == PORT_ACTIVE)
		port_changes(j, i, number, PORT_DOWN);
	for (int k = 0; k < PROPERTY_COUNT; k++) {
		if (strcmp(name, names[k]) != 0)
			continue;
		p->announced[k] = true;
		port_publish(j, property_events[k], MONITOR_INFO, i, number);
	}
}

static void adapter_is(struct judge *j, int i, const char *name, int ports)
{
	struct ib_state *s = j->state;
	struct adapter *a = &s->adapters[i];

	a->seen = true;
	if (a->there && a->ports == ports)
		return;
	*a = (struct adapter){.there = true, .seen = true, .ports = ports};
	judge_publish(j, "FTB_IB_ADAPTER_INFO", MONITOR_INFO, "ADAPTER:%d::NAME:%s::PORTS:%d", i,
		      name, ports);
}

static void adapters_are(struct judge *j, int count)
{
	struct ib_state *s = j->state;

	if (count > 0 && s->count <= 0)
		judge_publish(j, "FTB_IB_ADAPTER_AVAILABLE", MONITOR_INFO, "NUM_ADAPTERS:%d",
			      count);
	s->listing = true;
	s->listed = count;
	for (int i = 0; i < ADAPTERS_MAX; i++)
		s->adapters[i].seen = false;
}

static void ib_end(struct judge *j)
{
	struct ib_state *s = j->state;

	for (int i = 0; s->listing && i < ADAPTERS_MAX; i++) {
		struct adapter *a = &s->adapters[i];
		if (!a->there || a->seen)
			continue;
		for (int p = 1; p <= a->ports; p++)
			if (a->port[p].state == PORT_ACTIVE)
				port_changes(j, i, p, PORT_DOWN);
		device_fatal(j, i);
		a->there = false;
	}
	if (s->listing && s->listed == 0 && (!s->told || s->count > 0))
		judge_publish(j, "FTB_IB_ADAPTER_UNAVAILABLE", MONITOR_WARNING, "%s", "");
	if (s->listing)
		s->count = s->listed;
	s->told |= s->listing;
	s->listing = false;
}

static bool place(char **rest, const struct ib_state *s, bool port, int *i, int *number)
{
	uint64_t a, p = 0;

	if (!line_count(line_word(rest), &a) || a >= ADAPTERS_MAX)
		return false;
	if (port && (!line_count(line_word(rest), &p) || p > PORTS_MAX))
		return false;
	*i = (int)a;
	*number = (int)p;
	return !port || s->adapters[a].there;
}

static bool port_line(struct judge *j, char **rest)
{
	int i, number, state = PORT_DOWN;
	const char *word;

	if (!place(rest, j->state, true, &i, &number) || !(word = line_word(rest)))
		return false;
	while (state < PORT_STATES && strcmp(state_names[state], word) != 0)
		state++;
	if (state == PORT_STATES || number == 0)
		return false;
	port_changes(j, i, number, (enum port_state)state);
	if (state == PORT_UNKNOWN)
		return true;
	for (int k = 0; k < PROPERTY_COUNT; k++)
		property_is(j, i, number, (enum property)k, line_word(rest));
	return true;
}

static bool known_line(struct judge *j, const char *what, char **rest)
{
	const char *name;
	uint64_t count;
	int i, number;

	if (!strcmp(what, "adapters")) {
		if (!line_count(line_word(rest), &count) || count > ADAPTERS_MAX)
			return false;
		adapters_are(j, (int)count);
		return true;
	}
	if (!strcmp(what, "adapter")) {
		if (!place(rest, j->state, false, &i, &number) || !(name = line_word(rest)) ||
		    !line_count(line_word(rest), &count) || count > PORTS_MAX)
			return false;
		adapter_is(j, i, name, (int)count);
		return true;
	}
	if (!strcmp(what, "port"))
		return port_line(j, rest);
	if (!strcmp(what, "errors")) {
		if (!place(rest, j->state, true, &i, &number) || !(name = line_word(rest)) ||
		    !line_count(line_word(rest), &count))
			return false;
		errors_are(j, i, number, name, count);
		return true;
	}
	if (!strcmp(what, "event")) {
		if (!place(rest, j->state, true, &i, &number) || !(name = line_word(rest)))
			return false;
		event_is(j, i, number, name);
		return true;
	}
	return false;
}

static hale_status_t ib_line(struct judge *j, char *line, struct error *err)
{
	char *rest = line;
	const char *what = line_word(&rest);

	if (what && known_line(j, what, &rest))
		return HALE_OK;
	return line_unknown(what, "adapters, adapter, port, errors, event", err);
}

const struct monitor_kind monitor_ib = {.name = "ib",
					.space = "FTB.FTB_IB",
					.every = 2,
					.state_size = sizeof(struct ib_state),
					.line = ib_line,
					.end = ib_end,
					.read = monitor_ib_read};
