/* SPDX-License-Identifier: BSD-3-Clause */
/* Migrations that are asked for, in the order in which they were: one is under way at a time, and
 * each looks where there is place when its turn comes, since all before it have changed that.
 *
 *                       ┌──── another one, a checkpoint, a rollback is under way: waits
 *   asked for ─▶ QUEUED ┴─ its turn ─▶ it can be ─▶ migrate_begin
 *                  │                 └▶ it can't (any more) ─▶ refused, with a sentence
 *                  ├─ nobody wants it any more ─▶ forgotten
 *                  ├─ a rollback; a rule wants it ─▶ its ranks go elsewhere with that one
 *                  └─ the job ends ─▶ refused
 *
 * A node is in it once: who asks for what is asked for already waits for the same. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/address.h"
#include "base/base.h"
#include "head/head_private.h"
#include "head/migration/migrate_private.h"
#include "head/watch/watch.h"

#define LOOK_SECONDS 0.05

double migrate_patience(void)
{
	const char *text = getenv("HALE_MIGRATE_TIMEOUT");
	double seconds;

	return text && units_parse_seconds(text, &seconds) && seconds > 0 ? seconds : 60;
}

static void wish_free(struct migrate_wish *w)
{
	free(w->folder);
	free(w);
}

static void take_out(struct head *h, struct migrate_wish *w)
{
	struct migrate_wish **p = &h->moves.wishes;

	while (*p != w)
		p = &(*p)->next;
	*p = w->next;
}

static struct migrate_wish *wish_from(const struct head *h, uint32_t node)
{
	for (struct migrate_wish *w = h->moves.wishes; w; w = w->next)
		if (w->from == node)
			return w;
	return NULL;
}

uint32_t migrate_waits(const struct head *h, uint32_t node)
{
	const struct migrate_wish *w = wish_from(h, node);

	return w ? w->id : 0;
}

bool migrate_before(const struct head *h, uint32_t id)
{
	return (h->moves.now && h->moves.now->id != id) ||
	       (h->moves.wishes && h->moves.wishes->id != id);
}

/* ---- what can be ---- */

static hale_status_t check(const struct head *h, const struct migrate_wish *w, struct error *err)
{
	const struct node_set *c = &h->node_set;
	const struct node *from = &c->nodes[w->from];
	uint32_t *node_of;
	hale_status_t status;

	if (job_state_over(h->state))
		return error_set(err, HALE_ERR_STATE, "the job is ending");
	if (!c->laid_out || node_set_ranks_on(c, from) == 0)
		return error_set(err, HALE_ERR_ARGUMENT, "there is no rank on node %s", from->name);
	if (from->leave.state == LEAVE_MOVING && !w->by_user &&
	    !node_set_has_place(c, w->from, false))
		return error_set(err, HALE_ERR_NODE,
				 "the ranks of node %s stay there: no usable spare is left, nor "
				 "free slots for them",
				 from->name);
	node_of = calloc(h->nranks, sizeof(*node_of));
	if (!node_of)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for a migration");
	status = node_set_elsewhere(c, w->from, w->to, node_of, err);
	free(node_of);
	return status;
}

/* ---- the end of one that has not begun ---- */

static void refuse(struct head *h, struct migrate_wish *w, const struct error *err)
{
	struct node *n = &h->node_set.nodes[w->from];
	bool left = h->node_set.laid_out && node_set_ranks_on(&h->node_set, n) == 0;
	uint32_t id = w->id;

	take_out(h, w);
	wish_free(w);
	head_say(h, "%s", err->text);
	leave_refused(h, n->index, left);
	head_migrated(h, id, NULL, err);
}

static void refuse_all(struct head *h, const char *why)
{
	struct error err;

	while (h->moves.wishes) {
		error_set(&err, HALE_ERR_STATE, "the ranks of node %s stay there: %s",
			  h->node_set.nodes[h->moves.wishes->from].name, why);
		refuse(h, h->moves.wishes, &err);
	}
}

bool migrate_withdraw(struct head *h, enum migrate_asker asker, uint32_t id)
{
	struct migrate_wish *w = h->moves.wishes;

	while (w && w->id != id)
		w = w->next;
	if (!w)
		return false;
	if (asker == MIGRATE_USER)
		w->by_user = false;
	if (w->by_user ||
	    (asker == MIGRATE_USER && h->node_set.nodes[w->from].leave.state == LEAVE_MOVING))
		return false;
	take_out(h, w);
	wish_free(w);
	return true;
}

/* ---- turns ---- */

static void turn(void *arg);

static void look_again(struct head *h)
{
	loop_timer_set(&h->loop, &h->moves.next, LOOK_SECONDS, turn, h);
}

/* Ranks are where they are to stay, and nothing else has them. */
static bool settled(const struct head *h)
{
	if (h->moves.now || h->state != JOB_RUNNING)
		return false;
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (h->node_set.nodes[k].leave.state == LEAVE_PLANNED)
			return false;
	return true;
}

static bool may_begin(const struct head *h)
{
	return head_all_ready(h) && h->ckpt.phase == CKPT_IDLE && h->put_off.count == 0 &&
	       !head_checking(h) && !head_visiting(h);
}

static void begin(struct head *h, struct migrate_wish *w)
{
	struct error err;

	if (migrate_begin(h, w, &err) == HALE_OK) {
		take_out(h, w);
		wish_free(w);
	} else {
		refuse(h, w, &err);
	}
}

static void turn(void *arg)
{
	struct head *h = arg;
	double now = clock_seconds();
	const char *why;
	struct error err;

	if (!h->moves.wishes)
		return;
	if (!settled(h)) {
		h->moves.waiting_since = now;
	} else if (head_any_finalized(h)) {
		refuse_all(h, "the program is about to end");
	} else if (check(h, h->moves.wishes, &err) != HALE_OK) {
		refuse(h, h->moves.wishes, &err);
	} else if (may_begin(h)) {
		begin(h, h->moves.wishes);
		h->moves.waiting_since = now;
	} else if (now - h->moves.waiting_since > migrate_patience()) {
		why = head_why_not_ready(h);
		error_set(&err, HALE_ERR_STATE, "the ranks of node %s stay there: %s",
			  h->node_set.nodes[h->moves.wishes->from].name,
			  why ? why : "nothing has moved for too long");
		refuse(h, h->moves.wishes, &err);
		h->moves.waiting_since = now;
	}
	if (h->moves.wishes)
		look_again(h);
}

void migrate_turn(struct head *h)
{
	h->moves.waiting_since = clock_seconds();
	if (h->moves.wishes)
		loop_timer_set(&h->loop, &h->moves.next, 0, turn, h);
}

void migrate_drop(struct head *h, const char *why)
{
	struct migrate_wish *next;

	migrate_come_to_nothing(h, why);
	for (struct migrate_wish *w = h->moves.wishes; w; w = next) {
		next = w->next;
		leave_with_rollback(h, w->from);
		if (w->by_user)
			continue;
		take_out(h, w);
		wish_free(w);
	}
	migrate_turn(h);
}

void migrate_end(struct head *h, const char *why)
{
	migrate_come_to_nothing(h, why);
	refuse_all(h, why);
	loop_timer_clear(&h->loop, &h->moves.next);
}

void migrate_fini(struct head *h)
{
	clone_end(h);
	migrate_end(h, "the job has ended");
}

/* ---- asking ---- */

const struct node *migrate_node(const struct head *h, const char *name)
{
	char whole[ADDRESS_MAX]; /* as hosts are named (launch/hosts.c) */

	address_whole(whole, name, strlen(name));
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (strcmp(h->node_set.nodes[k].name, whole) == 0)
			return &h->node_set.nodes[k];
	return NULL;
}

static hale_status_t check_names(const struct node *from, const struct node *to,
				 const char *from_name, const char *to_name, struct error *err)
{
	if (!from || (to_name && !to))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "there is no node %s in this job; `hale nodes` lists them",
				 from ? to_name : from_name);
	if (from == to)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the ranks of node %s are there already: choose another node",
				 from->name);
	return HALE_OK;
}

/* Absolute: agents may stand elsewhere. */
static hale_status_t take_via(struct migrate_wish *w, const char *via, struct error *err)
{
	enum { FOLDER_MAX = 300 }; /* a mailbox has room for 511 bytes with what comes behind it */
	char here[PATH_MAX];

	if (!via)
		return HALE_OK;
	if (via[0] == '/')
		w->folder = strdup(via);
	else if (!getcwd(here, sizeof(here)) || asprintf(&w->folder, "%s/%s", here, via) < 0)
		w->folder = NULL;
	if (!w->folder)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for a migration");
	if (strlen(w->folder) > FOLDER_MAX)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the folder's path is too long for --via-files (at most %d bytes)",
				 FOLDER_MAX);
	return HALE_OK;
}

/* There is a migration from this node, to `there`, or to anywhere if that is the node itself. */
static hale_status_t join(const struct head *h, const struct node *from, const struct node *to,
			  uint32_t there, uint32_t existing, uint32_t *id, struct error *err)
{
	if (existing == 0 || (to && to->index != there))
		return error_set(err, HALE_ERR_STATE,
				 "the ranks of node %s are to go to %s%s already; wait for them",
				 from->name, there != from->index ? "node " : "another node",
				 there != from->index ? h->node_set.nodes[there].name : "");
	*id = existing;
	return HALE_OK;
}

static void append(struct head *h, struct migrate_wish *w)
{
	struct migrate_wish **end = &h->moves.wishes;

	while (*end)
		end = &(*end)->next;
	*end = w;
}

static hale_status_t ask(struct head *h, enum migrate_asker asker, const struct node *from,
			 const struct node *to, const char *via, uint32_t *id, struct error *err)
{
	struct migrate_wish *w = calloc(1, sizeof(*w));
	hale_status_t status;

	if (!w)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for a migration");
	w->from = from->index;
	w->to = to ? to->index : from->index;
	w->by_user = asker == MIGRATE_USER;
	status = take_via(w, via, err);
	/* how it will be when others are over can't be said */
	if (status == HALE_OK && !h->moves.now && !h->moves.wishes && h->state == JOB_RUNNING)
		status = check(h, w, err);
	if (status != HALE_OK) {
		wish_free(w);
		return status;
	}
	*id = w->id = ++h->moves.last_wish;
	append(h, w);
	if (!h->moves.now)
		migrate_turn(h);
	return HALE_OK;
}

hale_status_t migrate_request(struct head *h, enum migrate_asker asker, const char *from_name,
			      const char *to_name, const char *via, uint32_t *id, struct error *err)
{
	const struct node *from = migrate_node(h, from_name);
	const struct node *to = to_name ? migrate_node(h, to_name) : NULL;
	struct migrate_wish *w;
	hale_status_t status;

	if (job_state_over(h->state))
		return error_set(err, HALE_ERR_STATE, "the job is ending");
	if (clone_refuse_moves(h, via != NULL, err) != HALE_OK)
		return err->code;
	status = check_names(from, to, from_name, to_name, err);
	if (status != HALE_OK)
		return status;
	if (h->moves.now && h->moves.now->from == from->index && h->moves.now->id)
		return join(h, from, to, h->moves.now->to, h->moves.now->id, id, err);
	w = wish_from(h, from->index);
	if (!w)
		return ask(h, asker, from, to, via, id, err);
	status = join(h, from, to, w->to, w->id, id, err);
	if (status == HALE_OK && asker == MIGRATE_USER)
		w->by_user = true;
	return status;
}
