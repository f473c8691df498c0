/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that rules, or users, want to be without ranks (docs/rules.md). */
#ifndef HALE_HEAD_MIGRATION_LEAVE_H
#define HALE_HEAD_MIGRATION_LEAVE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

struct head;

struct node;

/* leave.c: the ranks of a node go to a spare, or without one where free slots are, because of
 * `why`, a few words. OK: they will when it is their turn, and watch_left says when. Otherwise a
 * sentence: no rank is there (ARGUMENT), there is no place (NODE). */
hale_status_t leave_node(struct head *h, const char *node, const char *why, struct error *err);
/* The migration from this node is over, and its ranks are elsewhere. */
void leave_moved(struct head *h, uint32_t node);
/* It has failed, and its ranks are there: they leave by a checkpoint, or stay. */
void leave_not_moved(struct head *h, uint32_t node);
/* When its turn came it could not be; left: no rank is there any more. */
void leave_refused(struct head *h, uint32_t node, bool left);
/* What rules wanted of another head: with a rollback that is about to begin, or by themselves. */
void leave_inherit(struct head *h, bool with_rollback);
/* What rules want may have changed: whose reason is over doesn't leave, if it hasn't begun to. */
void leave_review(struct head *h);
/* It ends since all ranks go back to a checkpoint: the ranks leave with the next layout. */
void leave_with_rollback(struct head *h, uint32_t node);
void leave_saved(struct head *h);		    /* a checkpoint is whole */
void leave_failed(struct head *h, const char *why); /* … will not be */
/* node_set_layout, without ranks on nodes that are being left. */
hale_status_t leave_layout(struct head *h, struct error *err);
void leave_over(struct head *h); /* all ranks run */
/* The name of a node's state, as the seed's launch agents have it: ARM while its ranks are leaving
 * it, INACTIVE when they have and the job does not run on yet. (Seed 001, 3.4.2.) */
const char *leave_node_state(const struct head *h, const struct node *n);

#endif
