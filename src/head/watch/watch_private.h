/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the watch share.
 *
 *   watch.c        life; the bus: own broker or tap; how much time it may take
 *   watch_tell.c   events of the job
 *   watch_rules.c  the engine, nodes, what is to be done
 *   watch_kept.c   events that are kept for the report
 *   watch_hosts.c  the way between its broker and those of its hosts
 *   watch_child.c  monitors and commands: processes that it starts
 */
#ifndef HALE_HEAD_WATCH_WATCH_PRIVATE_H
#define HALE_HEAD_WATCH_WATCH_PRIVATE_H

#include "ftb/broker.h"
#include "ftb/tap.h"
#include "head/head.h"
#include "head/watch/watch.h"
#include "rules/rules.h"

enum { WATCH_COMMANDS_MAX = 8, WATCH_DEFERRED_MAX = 1024 };

/* Beside the node set's node of the same place. */
struct watch_node {
	bool known;
	node_state_t state; /* as it was told */
	const char *shown;  /* its name then */
	uint32_t ranks;
	uint64_t migration;	  /* id of the action that is under way; 0: none */
	char why[RULES_WORD_MAX]; /* the rule that says that it is unusable */
};

/* An action of the engine, to be carried out from the loop. */
struct watch_action {
	rules_do_t what;
	uint64_t id;
	char *node, *argument, *rule, *event, *payload; /* owned */
	struct watch_action *next;
};

struct watch_child {
	pid_t pid;	     /* 0: waits to be started again */
	const char *options; /* of a monitor; NULL: a command */
	char *name;	     /* of a command: what it is; owned */
	int failures;
	struct loop_timer again;
	struct head *head;
	struct watch_child *next;
};

struct watch {
	struct head *head;
	/* the bus: one of the two */
	struct broker *broker;
	struct tap *tap;
	char path[108]; /* HALE_FTB of the ranks */
	uint64_t
	    *carried; /* [nodes]: bytes to brokers there that they have not handled; NULL: none */
	struct loop_source source;
	struct loop_timer rest;
	double window, spent; /* of the current tenth of a second: when it began, processor time */
	bool begun, muted;
	bool telling; /* an event of the head's own is on its way */
	/* rules */
	struct rules *rules;
	struct rules_engine *engine;
	struct loop_timer tick, carry;
	struct watch_node *nodes;
	uint32_t node_count;
	struct watch_action *first, **last;
	uint32_t deferred;
	const char *payload; /* of the event that the engine has in hand */
	uint64_t actions_dropped;
	/* processes */
	struct watch_child *children;
	uint32_t commands;
};

/* watch.c */
/* Publishes; severity as broker_publish. What goes wrong is said once. */
void watch_tell(struct head *h, const char *space, const char *name, int severity, const char *fmt,
		...) __attribute__((format(printf, 5, 6)));
/* callback(event, w) for what passes the bus and the filter has (ftb/broker.h), until the end. */
hale_status_t watch_subscribe(struct watch *w, const char *filter,
			      void (*callback)(const struct broker_event *event, void *arg),
			      struct error *err);

/* watch_tell.c: "node3 4,5", the ranks that has_come says have come to a node, if there are any. */
void watch_arrived(struct head *h, uint32_t node,
		   bool (*has_come)(const struct head *h, uint32_t rank, uint32_t node,
				    const void *arg),
		   const void *arg);

/* watch_kept.c: what the head has told, or others. */
void watch_keep(struct head *h, const char *severity, const char *space, const char *name,
		const char *host, const char *payload, size_t length);
hale_status_t watch_kept_start(struct watch *w, struct error *err);

/* watch_hosts.c: false if the job has no hosts, or there is no memory. *names is the caller's. */
bool watch_carrier(struct watch *w, struct broker_carrier *c, const char ***names);

/* watch_rules.c */
hale_status_t watch_rules_start(struct watch *w, struct error *err);
/* Nodes are known: events count from now on. */
void watch_rules_begin(struct watch *w);
void watch_rules_stop(struct watch *w);
void watch_rules_event(const struct broker_event *e, void *arg);
bool watch_of_another_job(const struct watch *w, const struct broker_event *e);

/* watch_child.c */
hale_status_t watch_monitors_start(struct watch *w, struct error *err);
void watch_children_stop(struct watch *w);
/* Starts a command with a text as its standard input; name is for sentences. All users of the
 * machine see argv (ps): what is nobody's business goes by the text and the environment. */
hale_status_t watch_command(struct watch *w, const char *name, char *const argv[], char **env,
			    const char *text, struct error *err);

#endif
