/* SPDX-License-Identifier: BSD-3-Clause */
/* All ranks of a node go to another one because a rule says so: they migrate (migrate.c), one node
 * after the other (migrate_queue.c), or if that fails, by way of a checkpoint: when it is whole,
 * the job goes on from it with these ranks elsewhere (seed 001, 3.4.2).
 *
 *                               ┌──────────── they have migrated ─────────────────────────┐
 *                               │                                                         ▼
 *   STAYS ── head_leave_node ──▶ MOVING ─fails─▶ SAVING ─whole─▶ LEAVING ─all gone─▶ ELSEWHERE
 *     ▲                            │               │ given up    (a rollback of the head)
 *     └─ no place, reason is over ─┴───────────────┘
 *
 * Any other rollback meanwhile takes them along: the next layout is without them there. A node that
 * was left is a spare. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ftb/ftb.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/migration/migrate.h"
#include "head/failover/succession.h"
#include "head/watch/watch_private.h"

#define LOOK_SECONDS 0.05

const char *leave_node_state(const struct head *h, const struct node *n)
{
	bool gone = n->leave.state == LEAVE_LEFT;

	if (n->state != NODE_READY && n->state != NODE_SPARE)
		return node_state_name(n->state);
	if (migrate_leaves(h, n, &gone) || n->leave.state == LEAVE_PLANNED ||
	    (n->leave.state == LEAVE_LEFT && n->state == NODE_SPARE))
		return gone ? "INACTIVE" : "ARM";
	return node_state_name(n->state);
}

static struct node *node_named(struct head *h, const char *name)
{
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (strcmp(h->node_set.nodes[k].name, name) == 0)
			return &h->node_set.nodes[k];
	return NULL;
}

static bool any_leaving(const struct head *h)
{
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (h->node_set.nodes[k].leave.state == LEAVE_PLANNED)
			return true;
	return false;
}

static hale_status_t by_checkpoint(struct head *h, struct node *n, const char *why,
				   struct error *err)
{
	hale_status_t status;

	if (h->o->max_restarts == 0)
		return error_set(err, HALE_ERR_STATE,
				 "%s: the ranks of node %s can't leave it, as --max-restarts is 0",
				 why, n->name);
	node_leave_event(n, LEAVE_BY_CHECKPOINT);
	head_say(h, "%s: the ranks of node %s go to another one, by a checkpoint", why, n->name);
	watch_tell(h, "FTB.JL", "FTB_MIGRATE", FTB_INFO, "%s", n->name);
	watch_nodes(h);
	status = checkpoint_request(h, ORIGIN_RULE, err);
	if (status != HALE_OK)
		node_leave_event(n, LEAVE_STAYS_PUT);
	else if (n->leave.state != LEAVE_PLANNED) /* refused at once: said already */
		status = error_set(
		    err, HALE_ERR_STATE,
		    "the ranks of node %s stay: there is no checkpoint to go on from", n->name);
	if (status != HALE_OK)
		watch_nodes(h);
	return status;
}

/* Whoever wanted its ranks away is told what came of it. */
static void over(struct head *h, struct node *n, leave_event_t event)
{
	leave_action_t action = node_leave_event(n, event);

	n->leave.wanted[0] = '\0';
	watch_left(h, n->name, action == LEAVE_TELL_LEFT);
	head_save(h);
}

hale_status_t leave_node(struct head *h, const char *node, const char *why, struct error *err)
{
	struct node *n = node_named(h, node);
	hale_status_t status;
	struct error no;
	uint32_t id;

	if (!n || n->state == NODE_LOST || node_set_ranks_on(&h->node_set, n) == 0)
		return error_set(err, HALE_ERR_ARGUMENT, "%s: there is no rank on node %s", why,
				 node);
	if (leave_is_under_way(n->leave.state))
		return HALE_OK;
	if (clone_refuse_moves(h, false, &no) != HALE_OK)
		return error_set(err, HALE_ERR_UNSUPPORTED, "%s: the ranks of node %s stay: %s",
				 why, node, no.text);
	if (!node_set_has_place(&h->node_set, n->index, true))
		return error_set(err, HALE_ERR_NODE,
				 "%s: the ranks of node %s have nowhere to go: no usable spare is "
				 "left, nor free slots for them",
				 why, node);
	node_leave_event(n, LEAVE_MIGRATES);
	status = migrate_request(h, MIGRATE_RULE, node, NULL, NULL, &id, err);
	if (status != HALE_OK)
		node_leave_event(n, LEAVE_STAYS_PUT);
	if (status != HALE_OK && h->degree == 1)
		status = by_checkpoint(h, n, why, err);
	if (status == HALE_OK)
		snprintf(n->leave.wanted, sizeof(n->leave.wanted), "%s", why);
	if (n->leave.state != LEAVE_MOVING)
		return status;
	head_say(h, "%s: the ranks of node %s go to another one%s", why, node,
		 migrate_before(h, id) ? ", after those that are on their way" : "");
	head_save(h);
	return HALE_OK;
}

void leave_refused(struct head *h, uint32_t node, bool left)
{
	struct node *n = &h->node_set.nodes[node];

	if (n->leave.state == LEAVE_MOVING)
		over(h, n, left ? LEAVE_HAS_MOVED : LEAVE_STAYS_PUT);
}

void leave_inherit(struct head *h, bool with_rollback)
{
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		struct node *n = &h->node_set.nodes[k];
		char why[sizeof(n->leave.wanted)];
		struct error err;

		memcpy(why, n->leave.wanted, sizeof(why));
		if (!why[0] || leave_is_under_way(n->leave.state))
			continue;
		if (n->state == NODE_LOST || node_set_ranks_on(&h->node_set, n) == 0) {
			n->leave.wanted[0] = '\0';
		} else if (with_rollback) {
			node_leave_event(n, LEAVE_BY_CHECKPOINT);
		} else {
			n->leave.wanted[0] = '\0';
			if (leave_node(h, n->name, why, &err) != HALE_OK)
				head_say(h, "%s", err.text);
		}
	}
}

void leave_review(struct head *h)
{
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		struct node *n = &h->node_set.nodes[k];
		uint32_t id = n->leave.state == LEAVE_MOVING ? migrate_waits(h, k) : 0;

		if (id == 0 || watch_wants_left(h, k))
			continue;
		if (migrate_withdraw(h, MIGRATE_RULE, id))
			head_say(h,
				 "the ranks of node %s stay there: what they were to leave it for "
				 "is over",
				 n->name);
		/* should another rule hold it back, it is asked for again later */
		over(h, n, LEAVE_STAYS_PUT);
	}
}

void leave_moved(struct head *h, uint32_t node)
{
	struct node *n = &h->node_set.nodes[node];

	if (n->leave.state == LEAVE_MOVING)
		over(h, n, LEAVE_HAS_MOVED);
}

void leave_not_moved(struct head *h, uint32_t node)
{
	struct node *n = &h->node_set.nodes[node];
	struct error err;

	if (n->leave.state != LEAVE_MOVING)
		return;
	node_leave_event(n, LEAVE_STAYS_PUT);
	if (by_checkpoint(h, n, "the migration has failed", &err) == HALE_OK)
		return;
	head_say(h, "%s", err.text);
	over(h, n, LEAVE_STAYS_PUT);
}

void leave_with_rollback(struct head *h, uint32_t node)
{
	struct node *n = &h->node_set.nodes[node];
	bool gone;

	/* one that only waits for its turn has told nobody yet */
	if (n->leave.state == LEAVE_MOVING && !migrate_leaves(h, n, &gone))
		watch_tell(h, "FTB.JL", "FTB_MIGRATE", FTB_INFO, "%s", n->name);
	node_leave_event(n, LEAVE_ROLLS_BACK);
}

static void go(void *arg)
{
	struct head *h = arg;

	if (!any_leaving(h) || h->state != JOB_RUNNING)
		return;
	if (head_unsettled(h)) {
		loop_timer_set(&h->loop, &h->moves.leave, LOOK_SECONDS, go, h);
		return;
	}
	if (head_any_finalized(h)) {
		leave_failed(h, "the program is about to end");
		return;
	}
	h->recovery.moving = true;
	head_roll_back(h);
}

void leave_saved(struct head *h)
{
	if (any_leaving(h))
		loop_timer_set(&h->loop, &h->moves.leave, 0, go, h);
}

void leave_failed(struct head *h, const char *why)
{
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		struct node *n = &h->node_set.nodes[k];

		if (n->leave.state != LEAVE_PLANNED)
			continue;
		head_say(h, "the ranks of node %s stay there: %s", n->name, why);
		over(h, n, LEAVE_STAYS_PUT);
	}
	watch_nodes(h);
}

static bool has_come(const struct head *h, uint32_t rank, uint32_t node, const void *before)
{
	return h->node_set.placement.node_of[rank] == node &&
	       ((const uint32_t *)before)[rank] != node;
}

hale_status_t leave_layout(struct head *h, struct error *err)
{
	struct node_set *c = &h->node_set;
	bool *leaves = calloc(c->count, sizeof(*leaves));
	uint32_t *before = calloc(h->nranks, sizeof(*before));
	hale_status_t status;
	bool any = false;

	for (uint32_t r = 0; before && r < h->nranks; r++)
		before[r] = c->placement.node_of[r];
	for (uint32_t k = 0; leaves && k < c->count; k++) {
		leaves[k] = c->nodes[k].leave.state == LEAVE_PLANNED;
		if (leaves[k])
			watch_tell(h, "FTB.NLA", "FTB_MIGRATE_PIC", FTB_INFO, "%s",
				   c->nodes[k].name);
	}
	status = node_set_layout(c, ++h->generation, h->degree > 1 ? h->view.lost : NULL, err);
	for (uint32_t k = 0; leaves && before && k < c->count; k++)
		if (status == HALE_OK && leaves[k] && c->nodes[k].state == NODE_SPARE) {
			node_leave_event(&c->nodes[k], LEAVE_HAS_LEFT);
			any = true;
			watch_node(h, k);
		}
	for (uint32_t k = 0; any && k < c->count; k++)
		watch_arrived(h, k, has_come, before);
	watch_nodes(h);
	free(leaves);
	free(before);
	return status;
}

void leave_over(struct head *h)
{
	h->recovery.moving = false;
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		node_leave_event(&h->node_set.nodes[k], LEAVE_ALL_BACK);
		h->node_set.nodes[k].leave.wanted[0] = '\0';
		watch_left(h, h->node_set.nodes[k].name,
			   node_set_ranks_on(&h->node_set, &h->node_set.nodes[k]) == 0);
	}
	watch_nodes(h);
}
