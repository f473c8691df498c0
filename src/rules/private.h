/* SPDX-License-Identifier: BSD-3-Clause */
/* What parser and engine share: a rule as a structure. */
#ifndef HALE_RULES_PRIVATE_H
#define HALE_RULES_PRIVATE_H

#include "rules/rules.h"

struct rules_names {
	char glob[RULES_NAMES_MAX][RULES_WORD_MAX];
	int count;
};

struct rules_step {
	rules_do_t what;
	int amount;	/* raise redundancy */
	int reason;	/* mark: index of the word after "by" */
	char *argument; /* run, webhook, mail; owned; NULL else */
};

typedef enum rules_scope {
	SCOPE_EACH,    /* every node by itself */
	SCOPE_COUNT,   /* `need` nodes */
	SCOPE_PERCENT, /* `need` percent of the nodes */
} rules_scope_t;

struct rule {
	char name[RULES_WORD_MAX];
	int line;
	/* which events */
	struct rules_names when, until;
	char space[RULES_WORD_MAX], node[RULES_WORD_MAX]; /* globs; "*" by default */
	char *payload;					  /* glob; NULL: any */
	rules_severity_t severity;			  /* or worse */
	/* how many of them, for how long, where */
	int count;
	double within, hold; /* seconds; within 0: count is 1, and no window */
	rules_scope_t scope;
	int need;
	/* what then */
	struct rules_step steps[RULES_ACTIONS_MAX], otherwise[RULES_ACTIONS_MAX];
	int step_count, otherwise_count;
	unsigned instead; /* mask of rules_do_t that nobody does while this rule holds */
	double every;	  /* repeated so often while it holds; 0: not */
	double once;	  /* at most once in so many seconds */
};

struct rules {
	struct rule *v;
	size_t count, cap;
	char reasons[RULES_REASONS_MAX][RULES_WORD_MAX]; /* [0] is "" */
	int reason_count;
};

static inline bool rule_latches(const struct rule *r)
{
	return r->until.count > 0;
}

/* Whether an action concerns one node. */
static inline bool rules_do_needs_node(rules_do_t what)
{
	return what == RULES_MIGRATE || what == RULES_CLONE || what == RULES_MARK_UNUSABLE ||
	       what == RULES_MARK_USABLE;
}

static inline bool rules_do_needs_spare(rules_do_t what)
{
	return what == RULES_MIGRATE || what == RULES_CLONE;
}

/* '*' any text, '?' one byte; nothing else is special. Linear in time but for the last star. */
bool rules_glob(const char *pattern, const char *text);

#endif
