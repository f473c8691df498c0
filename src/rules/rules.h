/* SPDX-License-Identifier: BSD-3-Clause */
/* rules/: what is to be done about which event.
 *
 *   when FTB_IPMI_OVERTEMP until FTB_IPMI_NORMAL for 10s do migrate else checkpoint
 *
 * A text becomes a set of rules (rules_parse); an engine is fed with events, the time and what
 * becomes of the job's nodes, and says which actions to take. It does no I/O, reads no clock and
 * starts nothing, so the head of a job, `hale rules try` and the tests run the very same code.
 * The language: docs/rules.md. Where it comes from: seed 001, 3.4.3 (checkpoint and migration
 * triggers). Not thread-safe; everything is single calls that never block.
 * May call: base/. Called by: head/watch, cli/.
 */
#ifndef HALE_RULES_RULES_H
#define HALE_RULES_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum {
	RULES_WORD_MAX = 128,	/* bytes of a name or pattern, with its NUL */
	RULES_TEXT_MAX = 1024,	/* bytes of a quoted text, with its NUL */
	RULES_ACTIONS_MAX = 8,	/* of one rule, and as many after its "else" */
	RULES_NAMES_MAX = 8,	/* event names in one list */
	RULES_COUNT_MAX = 1000, /* N in "N within TIME" */
	RULES_MAX = 1000,	/* rules in one set */
	RULES_REASONS_MAX = 32, /* different words after "by" */
	RULES_NODE_MAX = 256,	/* bytes of a node's name, with its NUL */
};

typedef enum rules_severity {
	RULES_INFO,
	RULES_WARNING,
	RULES_ERROR,
	RULES_FATAL
} rules_severity_t;

/* "INFO" … "FATAL" in any case; false for anything else. */
bool rules_severity_parse(const char *text, rules_severity_t *severity);
const char *rules_severity_name(rules_severity_t severity);

/* ---- the set ---- */

struct rules;

/* Calls each(arg, namespace, event) for every pair of patterns by which rules choose events,
 * perhaps more than once for the same: what is worth subscribing to. */
void rules_each_event(const struct rules *rules,
		      void (*each)(void *arg, const char *space, const char *event), void *arg);

/* Parses text (len bytes, need not end in NUL). name is what errors call it: "FILE:LINE: …".
 * On success *rules is owned by the caller. An empty text is a set without rules.
 * HALE_ERR_ARGUMENT when the text is not right, HALE_ERR_MEMORY. */
hale_status_t rules_parse(const char *name, const char *text, size_t len, struct rules **rules,
			  struct error *err);
/* The same for a file, of at most 1 MiB; HALE_ERR_SYSTEM when it can't be read. */
hale_status_t rules_load(const char *path, struct rules **rules, struct error *err);
/* Those that Hale ships: the three scenarios of seed 001, 3.4.3, and what else is on every node. */
hale_status_t rules_default(struct rules **rules, struct error *err);
void rules_destroy(struct rules *rules); /* NULL is fine */
size_t rules_count(const struct rules *rules);

/* ---- actions ---- */

typedef enum rules_do {
	RULES_CHECKPOINT,	/* of the job */
	RULES_MIGRATE,		/* the ranks of `node` go to a spare */
	RULES_CLONE,		/* the ranks of `node` get replicas on a spare */
	RULES_MARK_UNUSABLE,	/* nothing is to be placed on `node` from now on */
	RULES_MARK_USABLE,	/* … it may be again */
	RULES_RAISE_REDUNDANCY, /* of the job, by `amount` replicas */
	RULES_RUN,		/* `argument` is a command for /bin/sh */
	RULES_WEBHOOK,		/* `argument` is a URL to which the event is posted */
	RULES_MAIL,		/* `argument` is an address */
	RULES_DO_COUNT
} rules_do_t;

/* "checkpoint", "mark unusable" …, as in the language. */
const char *rules_do_name(rules_do_t what);

struct rules_action {
	rules_do_t what;
	uint64_t id;	      /* for rules_engine_done; never 0, never twice */
	double time;	      /* that of the call which gave it */
	const char *node;     /* it is about, or has set it off; "" when that is several nodes */
	const char *argument; /* "" when it has none */
	int amount;
	const char *rule;  /* its name, "" when it has none */
	int line;	   /* where the rule begins */
	const char *event; /* the event that has set it off, or the last one that did */
};

/* Called inside the engine's calls. All strings are valid only until it returns. It must not call
 * the engine. */
typedef void rules_emit_fn(void *arg, const struct rules_action *action);

/* ---- the engine ---- */

struct rules_event {
	double time;	     /* seconds, of the receiver's monotonic clock */
	const char *space;   /* namespace: "FTB.FTB_IPMI" */
	const char *name;    /* "FTB_IPMI_FANFAIL" */
	const char *host;    /* of the publisher */
	const char *payload; /* "" for none */
	rules_severity_t severity;
};

typedef enum rules_role {
	RULES_NODE_GONE,    /* lost or taken away: forgotten, with all that was known about it */
	RULES_NODE_WORKING, /* has ranks */
	RULES_NODE_SPARE,   /* has none, and may get some unless a rule has marked it unusable */
	RULES_NODE_OFF	    /* has none and gets none, by somebody's decision */
} rules_role_t;

struct rules_engine;

/* rules are only borrowed, and must live longer. NULL without memory. */
struct rules_engine *rules_engine_create(const struct rules *rules, rules_emit_fn *emit, void *arg);
void rules_engine_destroy(struct rules_engine *e); /* NULL is fine */

/* What a node is from now on: called for each at the start, and whenever a view changes it. Events
 * that concern other nodes are ignored: nobody can make an engine grow by inventing names.
 * HALE_ERR_ARGUMENT for a name that is empty or too long, HALE_ERR_MEMORY. */
hale_status_t rules_engine_node(struct rules_engine *e, const char *name, rules_role_t role,
				double now);

/* How many ranks it has, and how many slots for them (0: nobody has said): where no spare is left,
 * ranks may go to nodes that have free slots for all of them. Others than nodes of the job are
 * ignored. */
void rules_engine_slots(struct rules_engine *e, const char *node, unsigned ranks, unsigned slots);

/* The machine that a node is part of, where that has another name, or several nodes: an event about
 * host concerns every node on it. Copied; "" for none. ARGUMENT for an unknown node or a name that
 * is too long. */
hale_status_t rules_engine_host(struct rules_engine *e, const char *node, const char *host);

/* An event. It concerns the node that its payload names: all of it ("<node>", as the events of
 * FTB-IPMI), or "NODE:<node>" among fields that "::" divides; else the publisher's host. One that
 * names a node which the job does not have concerns nobody: a single word that can be a name, and
 * is no number, is a name. A field "COUNT:<n>" lets it count n times. Times that go back are taken
 * for the latest one so far. */
void rules_engine_event(struct rules_engine *e, const struct rules_event *event);

/* Time has passed. To be called when rules_engine_next's moment has come; more often is fine. */
void rules_engine_tick(struct rules_engine *e, double now);
/* When something may happen without an event; infinity when nothing will. */
double rules_engine_next(const struct rules_engine *e);

/* A migration or clone has ended. Until then it holds one spare for itself, and the same isn't
 * asked for again. After a failure it is tried again in 30 s if the reason is still there.
 * Tell changed nodes (rules_engine_node) before. Other ids are ignored. */
void rules_engine_done(struct rules_engine *e, uint64_t id, bool ok, double now);

/* Whether the migration or clone that is under way is still wanted: for one that has not begun.
 * True for other ids: nothing is known against them. */
bool rules_engine_wanted(const struct rules_engine *e, uint64_t id);

/* Whether ranks may be placed there: no rule has marked it unusable, and none that holds wants
 * ranks away from it. False for unknown nodes. */
bool rules_engine_usable(const struct rules_engine *e, const char *node);

#endif
