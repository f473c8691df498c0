/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's state.
 *
 *                 event ─▶ cell (rule x node): stamps in the window, active from the Nth on
 *                            │ each node                  │ several nodes
 *                            ▼                            ▼
 *                        cell.stand                  wide.stand     holds since …
 *                            └────────────┬───────────────┘
 *                        held for `hold`, not too soon after the last time: fire
 *                                         ▼
 *                              pending steps ─▶ emit, or wait
 *
 * Invariants:
 *   a stand fires at most once while it holds, but for `every`;
 *   a step stays pending only while its stand holds: until an `instead of` of another rule ends, a
 *   spare is there, or a failed migration may be tried again;
 *   migrations and clones that are on their way (node.moving) never outnumber usable spares when
 *   they are emitted, unless all of their ranks fit into free slots of working nodes.
 */
#ifndef HALE_RULES_ENGINE_H
#define HALE_RULES_ENGINE_H

#include "rules/private.h"

struct stand {
	bool holds, fired;
	bool fell_back;	  /* its "else" has been done, this time */
	unsigned pending; /* mask of steps */
	double since;	  /* of holds */
	double fired_at;  /* the last time ever; -infinity before */
	double not_before;
	char event[RULES_WORD_MAX]; /* that made it hold: it may fire long after that */
};

struct cell {
	double *stamps; /* ring of rule.count, when there is a window */
	int head, used; /* the next to write; how many are valid */
	bool active;	/* latching rules */
	struct stand stand;
};

struct rules_node {
	char name[RULES_NODE_MAX];
	char host[RULES_NODE_MAX]; /* "": the machine has the node's name */
	rules_role_t role;
	unsigned ranks, slots;
	unsigned unusable; /* mask of reasons */
	uint64_t moving;   /* id of the migration or clone under way; 0 */
	size_t moving_rule;
	int moving_step;
	struct cell *cells; /* one for each rule */
};

struct rules_engine {
	const struct rules *rules;
	rules_emit_fn *emit;
	void *arg;
	struct rules_node **nodes; /* by name */
	size_t count, cap;
	struct stand *wide; /* one for each rule; used by those about several nodes */
	double now, next;
	uint64_t last_id;
	bool dirty; /* something may be possible now for others than those an event touches */
	const char *event; /* what goes on is due to it; "" */
};

/* stand.c */

/* Not marked, and no rule that holds wants its ranks away. */
bool node_usable(const struct rules_engine *e, const struct rules_node *n);

/* Brings one stand forward: fires, does what is pending, notes when to look again. n is NULL for a
 * rule about several nodes. */
void stand_advance(struct rules_engine *e, size_t rule, struct rules_node *n, struct stand *s);
void stand_rise(struct rules_engine *e, struct stand *s);
void stand_fall(struct rules_engine *e, const struct rule *r, struct stand *s);

#endif
