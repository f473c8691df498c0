/* SPDX-License-Identifier: BSD-3-Clause */
/* All ranks of a node move to others while the job runs, the head's side (docs/migration.md). */
#ifndef HALE_JOB_MIGRATE_H
#define HALE_JOB_MIGRATE_H

#include <stdbool.h>
#include "job/head.h"
#include "job/message.h"

/* Begins to move all ranks of node `from` to node `to` (NULL: a spare, or those with most room), by
 * files in a folder of their own in `via` (NULL: by streams).
 * HALE_OK: under way; control_migrated is called at the end. HALE_ERR_ARGUMENT: no such node,
 * HALE_ERR_NODE: no place, HALE_ERR_STATE: not now; each with a sentence. */
hale_status_t migrate_request(struct head *h, const char *from, const char *to, const char *via,
			      struct error *err);
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
/* A node is lost. True: it had copies that may have been ranks already, *rank is one of them. */
bool migrate_node_lost(struct head *h, const struct node *node, uint32_t *rank);

/* One of another head, which nobody has told to go on yet: all ranks stay. id: the generation that
 * it was to lead to. */
void migrate_inherit(struct head *h, uint32_t id, uint32_t from);
/* All ranks stay; nothing if it is too late for that, or none is under way. */
void migrate_give_up(struct head *h, const char *why);
/* All ranks are being ended: there is nothing to be undone. */
void migrate_drop(struct head *h, const char *why);
void migrate_fini(struct head *h);

#endif
