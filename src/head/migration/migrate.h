/* SPDX-License-Identifier: BSD-3-Clause */
/* All ranks of a node move to others while the job runs, the head's side (docs/migration.md). */
#ifndef HALE_HEAD_MIGRATION_MIGRATE_H
#define HALE_HEAD_MIGRATION_MIGRATE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "node/proto.h"
#include "policy/place.h"
#include "wire/message/message.h"
#include "wire/session/loop.h"

struct head;
struct node;

/* Of the head: the migration under way, and those that wait for their turn. */
struct migrations {
	struct migration *now;	     /* NULL: none is under way */
	struct migrate_wish *wishes; /* in their order */
	uint32_t last_wish;
	double waiting_since; /* the first of them, when nothing is in its way */
	struct loop_timer next, leave;
	struct clones {
		struct loop_timer next; /* dead replicas are looked after */
		double again;		/* seconds after one that failed; 0: at once */
		uint32_t *homes;	/* [nranks]: the node that a process died on */
		double *died_at;	/* [nranks] */
		unsigned char *wanted;	/* [ranks]: replicas that it is to have */
		unsigned char *dropped; /* [nranks]: ended since one less is wanted */
		unsigned char *insists; /* [nranks]: homes is where the user wants it */
		uint32_t only; /* with --audit: that process alone may come; nranks: none */
		bool asked;    /* by the user; else only --replenish brings them back */
	} clones;
};

/* Who wants ranks away from a node. */
enum migrate_asker {
	MIGRATE_RULE, /* nodes[].moving: only to a spare, or where there are free slots for all */
	MIGRATE_USER
};

/* Each rank is to have that many replicas from now on (1 to the job's degree); one more of that
 * rank, on node `to` if that is not NULL, in *slot. HALE_OK: it has begun, and is seen in the view.
 * Else a sentence. */
hale_status_t clone_degree(struct head *h, uint32_t degree, struct error *err);
hale_status_t clone_rank(struct head *h, uint32_t rank, const struct node *to, uint32_t *slot,
			 struct error *err);
/* HALE_OK, or why no process of this job moves (by files). */
hale_status_t clone_refuse_moves(const struct head *h, bool by_files, struct error *err);
/* Ends that process; its death is no failure. */
void clone_drop(struct head *h, uint32_t process);
/* NULL: there is none of that name. */
const struct node *migrate_node(const struct head *h, const char *name);

/* All ranks of node `from` are to move to node `to` (NULL: a spare, or those with most room), by
 * files in a folder of their own in `via` (NULL: by streams), as soon as those that were asked for
 * before are over. Whoever asks for what is asked for already gets the same *id.
 * HALE_OK: control_migrated is called with *id at the end. HALE_ERR_ARGUMENT: no such node,
 * HALE_ERR_NODE: no place, HALE_ERR_STATE: not now; each with a sentence. */
hale_status_t migrate_request(struct head *h, enum migrate_asker asker, const char *from,
			      const char *to, const char *via, uint32_t *id, struct error *err);
/* A rule, or the last user who asked for migration id, takes the wish back. True: the migration had
 * not begun, nobody else wants it, and it is dropped. */
bool migrate_withdraw(struct head *h, enum migrate_asker asker, uint32_t id);
/* The one that waits for its turn to leave this node; 0: none. */
uint32_t migrate_waits(const struct head *h, uint32_t node);
/* Another one is under way, or waits. */
bool migrate_before(const struct head *h, uint32_t id);
/* One is under way: no checkpoint can be taken. */
bool migrate_busy(const struct head *h);
/* One is on the way from this node. *gone: all its ranks have left it. */
bool migrate_leaves(const struct head *h, const struct node *n, bool *gone);
/* The ranks stand still for it. */
bool migrate_stops(const struct head *h);

/* ---- what happens; true: that was the migration's ---- */

bool migrate_checked(struct head *h, const struct error *err);
bool migrate_packet(struct head *h, uint32_t rank, const union proto_packet *p);
bool migrate_ended(struct head *h, uint32_t rank, int status);
void migrate_message(void *head, const struct node *node, const struct message *m);
/* Another agent has taken the place of a node's: streams through it have ended. */
void migrate_node_renewed(struct head *h, const struct node *node, const char *why);
/* A node is lost. True: it had copies that may have been ranks already, *rank is one of them. */
bool migrate_node_lost(struct head *h, const struct node *node, uint32_t *rank);

/* ---- another head's (migrate_follow.c) ---- */

/* One that nobody has told to go on yet: all ranks stay. id: the generation that it was to lead to.
 */
void migrate_inherit(struct head *h, uint32_t id, uint32_t from, bool cloned);
struct json_value;
struct json_out;
struct attach_rank;
/* Of the one that is under way, from GO on: all that another head would have to know, as "move" of
 * the open object. */
void migrate_put(const struct head *h, struct json_out *j);
/* Takes over the migration that the last head has put there (NULL: none was under way). Nothing is
 * told or looked after before migrate_go_on. */
hale_status_t migrate_follow(struct head *h, const struct json_value *doc, struct error *err);
/* What a node has said of its ranks, [nranks]. */
void migrate_attached(struct head *h, const struct node *n, const struct attach_rank *ranks);
/* This node has not heard yet all of the migration that has led to the layout of now. */
bool migrate_is_behind(const struct head *h, const struct node *n);
/* A node that ranks were to come to is lost. */
bool migrate_to_lost(const struct head *h);
/* Those that are behind hear GO; then the rest. */
void migrate_go_again(struct head *h);
void migrate_go_on(struct head *h);
/* Copies that GO was written down for are their processes, whoever has heard it. */
void migrate_clones_go(struct head *h);

/* ---- jobs with replicas (clone.c) ---- */

/* Those that are dead come back, where there is place for them, as soon as that can be. */
void clone_soon(struct head *h);
/* The job's nodes as policy/place.c sees them, and how many living processes each has, for whoever
 * looks for a place for a copy. False: no memory. Whatever comes of it, to be freed by fini. */
struct clone_places {
	struct place_node *nodes; /* [nodes of the job] */
	uint32_t *there;
};

bool clone_places(const struct head *h, struct clone_places *p);
void clone_places_fini(struct clone_places *p);
/* A process has died, and its rank goes on in another one. */
void clone_lost_one(struct head *h);
/* The view has just lost that process: a copy of it that comes alone and does not know yet all that
 * it has decided goes with it. */
void clone_source_lost(struct head *h, uint32_t process);
void clone_end(struct head *h);

/* All ranks stay; nothing if it is too late for that, or none is under way. */
void migrate_give_up(struct head *h, const char *why);
/* All ranks are being ended: there is nothing to be undone. Those that rules want away from their
 * nodes and that have not begun go elsewhere with them; what users want waits on. */
void migrate_drop(struct head *h, const char *why);
/* The same, and no other one begins. */
void migrate_end(struct head *h, const char *why);
void migrate_fini(struct head *h);

#endif
