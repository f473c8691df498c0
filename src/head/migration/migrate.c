/* SPDX-License-Identifier: BSD-3-Clause */
/* A migration, the head's side. Agents do what agent_migrate.c says; docs/migration.md has the
 * ranks' part and the invariants.
 *
 * (By files: from PREPARING to STOPPING.)
 *
 *   (queue) ─▶ CHECKING ─▶ PREPARING ─▶ AHEAD ─all small─▶ STOPPING ─all copies─▶ GOING
 *      │          │            │          │                   │ whole              │ all sources
 *      ▼          ▼            ▼          ▼                   ▼                    ▼ have ended
 *   refused    refused      CANCELLING ◀──┴───────────────────┘                RELEASING ─▶ moved
 *                              │ no copy is left anywhere                 (all have resumed)
 *                              ▼
 *                           all stay
 *
 * Up to STOPPING whatever fails leaves everything as it was. GOING begins only when every copy is
 * whole and in place; what dies from then on is a rank, which costs a rollback. */
#include "head/migration/migrate.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ftb/ftb.h"
#include "head/head_private.h"
#include "head/migration/migrate_private.h"
#include "head/failover/succession.h"
#include "head/watch/watch_private.h"

#define LOOK_SECONDS 0.05

bool migrate_busy(const struct head *h)
{
	return h->moves.now != NULL;
}

bool migrate_leaves(const struct head *h, const struct node *n, bool *gone)
{
	const struct migration *v = h->moves.now;

	if (!v || v->phase < PREPARING || v->from != n->index)
		return false;
	*gone = v->phase == RELEASING;
	return true;
}

bool migrate_stops(const struct head *h)
{
	return h->moves.now && h->moves.now->phase >= STOPPING &&
	       h->moves.now->phase != CANCELLING && !h->moves.now->alone;
}

/* ---- the end ---- */

static void move_free(struct head *h)
{
	struct migration *v = h->moves.now;

	h->moves.now = NULL;
	h->node_set.coming = NULL;
	h->node_set.let_go = false;
	loop_timer_clear(&h->loop, &v->timer);
	free(v->coming);
	for (uint32_t r = 0; v->movers && r < h->nranks; r++)
		free(v->movers[r].program);
	free(v->movers);
	free(v->folder);
	for (uint32_t k = 0; v->places && k < h->node_set.count; k++)
		free(v->places[k].bytes);
	free(v->places);
	free(v->awaited);
	free(v);
}

static void stays(struct head *h)
{
	struct migration *v = h->moves.now;
	const char *from = h->node_set.nodes[v->from].name;
	uint32_t node = v->from, id = v->id;
	bool cloned = v->cloned;
	struct error err;
	struct json_out j;

	if (cloned)
		clone_stays(h);
	record_begin(&j, cloned ? "clone given up" : "migration given up");
	json_string(&j, "from", from);
	json_string(&j, "why", v->why);
	record_end(&h->files.record, &j);
	error_set(&err, HALE_ERR_STATE, "the ranks of node %s stay there: %s", from, v->why);
	if (!cloned)
		head_say(h, "%s", err.text);
	move_free(h);
	watch_nodes(h);
	head_profile_turn(h);
	head_migrated(h, id, NULL, &err);
	if (id) /* of another head's, rules want another one, which waits */
		leave_not_moved(h, node);
	warm_again(h);
	checkpoint_poll(h);
	migrate_turn(h);
}

bool migrate_all_answered(const struct head *h)
{
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (h->moves.now->awaited[k] && h->node_set.nodes[k].state != NODE_LOST)
			return false;
	return true;
}

void migrate_await_all(struct head *h)
{
	for (uint32_t k = 0; k < h->node_set.count; k++)
		h->moves.now->awaited[k] = h->node_set.nodes[k].state != NODE_LOST;
}

/* No copy is left: the ranks may go on. */
void migrate_cancelled(struct head *h)
{
	if (!migrate_all_answered(h))
		return;
	node_set_tell_all(&h->node_set, &(struct message){.type = MSG_MOVE_OVER, .id = h->ckpt.id});
	stays(h);
}

/* Its copy has been let go: it is a process as any other, and not needed any more. */
void migrate_alone_failed(struct head *h, const char *why)
{
	struct migration *v = h->moves.now;

	snprintf(v->why, sizeof(v->why), "%s", why);
	for (uint32_t p = 0; p < h->nranks; p++)
		if (v->movers[p].moves && !h->view.lost[p])
			shadows_stop(h, p);
	head_view_changed(h);
	node_set_tell_all(&h->node_set, &(struct message){.type = MSG_MOVE_OVER, .id = h->ckpt.id});
	stays(h);
}

void migrate_give_up(struct head *h, const char *why)
{
	struct migration *v = h->moves.now;

	if (!v || v->phase >= GOING)
		return;
	snprintf(v->why, sizeof(v->why), "%s", why);
	if (v->phase < PREPARING) {
		stays(h);
		return;
	}
	v->phase = CANCELLING;
	migrate_await_all(h);
	node_set_tell_all(&h->node_set,
			  &(struct message){.type = MSG_MOVE_CANCEL, .id = v->generation});
	migrate_cancelled(h);
}

struct migration *migrate_create(struct head *h, uint32_t from)
{
	struct migration *v = h->moves.now = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->from = v->to = from;
	v->coming = calloc(h->nranks, sizeof(*v->coming));
	v->movers = calloc(h->nranks, sizeof(*v->movers));
	v->awaited = calloc(h->node_set.count, sizeof(*v->awaited));
	v->places = calloc(h->node_set.count, sizeof(*v->places));
	v->began = v->moved_at = clock_seconds();
	if (v->coming && v->movers && v->awaited && v->places)
		return v;
	move_free(h);
	return NULL;
}

void migrate_inherit(struct head *h, uint32_t id, uint32_t from, bool cloned)
{
	struct migration *v = migrate_create(h, from);

	if (!v)
		return;
	v->generation = id;
	v->cloned = cloned;
	memcpy(v->coming, h->node_set.placement.node_of, h->nranks * sizeof(*v->coming));
	v->phase = PREPARING;
	h->ckpt.chain.broken = true;
	migrate_watch(h);
	migrate_give_up(h, "its head has ended meanwhile");
}

void migrate_come_to_nothing(struct head *h, const char *why)
{
	struct error err;
	uint32_t id;

	if (!h->moves.now)
		return;
	id = h->moves.now->id;
	error_set(&err, HALE_ERR_STATE, "the migration from node %s has come to nothing: %s",
		  h->node_set.nodes[h->moves.now->from].name, why);
	h->ckpt.chain.broken = true;
	leave_with_rollback(h, h->moves.now->from);
	move_free(h);
	head_migrated(h, id, NULL, &err);
}

static bool has_come(const struct head *h, uint32_t rank, uint32_t node, const void *arg)
{
	return h->moves.now->movers[rank].moves && h->moves.now->coming[rank] == node;
}

static void record_move(struct head *h, const struct report_migration *m)
{
	struct json_out j;

	record_begin(&j, "migrated");
	report_print_migration(m, &j);
	record_end(&h->files.record, &j);
	report_add_migration(&h->report, m);
	head_report_nodes(h);
}

uint32_t migrate_rounds_most(const struct head *h)
{
	size_t most = 0;

	for (uint32_t r = 0; r < h->nranks; r++)
		if (h->moves.now->movers[r].steps > most)
			most = h->moves.now->movers[r].steps;
	return (uint32_t)most;
}

uint32_t migrate_held_most(const struct head *h)
{
	uint32_t most = 0;

	for (uint32_t r = 0; r < h->nranks; r++)
		if (h->moves.now->movers[r].held_rounds > most)
			most = h->moves.now->movers[r].held_rounds;
	return most;
}

void migrate_done(struct head *h)
{
	struct migration *v = h->moves.now;
	double now = clock_seconds();
	uint32_t id = v->id;
	struct report_migration m = {.ranks = v->ranks,
				     .bytes = v->bytes,
				     .relayed = v->relayed,
				     .stopped = v->stopped,
				     .rounds = migrate_rounds_most(h),
				     .held = migrate_held_most(h),
				     .seconds = now - v->began,
				     .downtime_seconds = now - v->stopped_at,
				     .at_seconds = v->began - h->job_began};

	snprintf(m.from, sizeof(m.from), "%s", h->node_set.nodes[v->from].name);
	snprintf(m.to, sizeof(m.to), "%s", v->target);
	if (v->cloned)
		clone_done(h);
	else
		record_move(h, &m);
	for (uint32_t k = 0; !v->cloned && k < h->node_set.count; k++)
		watch_arrived(h, k, has_come, NULL);
	watch_nodes(h);
	leave_moved(h, v->from);
	move_free(h);
	/* what it took its differences from is another process now */
	h->ckpt.chain.broken = true;
	head_profile_turn(h);
	inject_arm_mailboxes(h);
	watch_nodes(h);
	head_save(h);
	head_migrated(h, id, &m, NULL);
	warm_again(h);
	checkpoint_poll(h);
	migrate_turn(h);
}

/* ---- beginning ---- */

/* The time to look whether it takes too long. */
static void look(void *arg);

void migrate_watch(struct head *h)
{
	loop_timer_set(&h->loop, &h->moves.now->timer, LOOK_SECONDS, look, h);
}

/* What hangs after all copies are whole can't be taken back. A process that a rank has moved from
 * may be ended at any time; a rank that can't go on is ended, too. */
static void end_hanging(struct head *h)
{
	struct migration *v = h->moves.now;

	/* a disk that a node can't remove its files from holds nobody up */
	if (v->phase == RELEASING && migrate_all_resumed(h)) {
		head_say(h, "files of the migration from node %s are not removed yet",
			 h->node_set.nodes[v->from].name);
		migrate_done(h);
		return;
	}
	if (v->phase == RELEASING)
		head_say(h,
			 "the migration from node %s hangs; all ranks go back to the newest "
			 "checkpoint",
			 h->node_set.nodes[v->from].name);
	else
		head_say(h,
			 "processes on node %s, from which ranks have moved, hang; they are "
			 "killed",
			 h->node_set.nodes[v->from].name);
	v->moved_at = clock_seconds();
	for (uint32_t r = 0; r < h->nranks; r++)
		if (v->phase == RELEASING ? !v->movers[r].moves && !v->movers[r].resumed
					  : v->movers[r].moves && !v->movers[r].moved)
			node_set_signal(&h->node_set, r, SIGKILL);
}

static void look(void *arg)
{
	struct head *h = arg;
	struct migration *v = h->moves.now;
	double now = clock_seconds();

	if (v->doomed_at > 0 && now > v->doomed_at && v->phase < GOING) {
		char why[sizeof(v->why)];
		memcpy(why, v->why, sizeof(why));
		migrate_give_up(h, why);
	} else if (now - v->moved_at > migrate_patience() && v->phase < GOING) {
		migrate_give_up(h, "nothing has moved for too long");
	} else if (now - v->moved_at > migrate_patience() && v->phase < CANCELLING && !v->alone) {
		end_hanging(h);
	}
	if (h->moves.now == v)
		migrate_watch(h);
}

/* In it, one that nobody else has: found by a target, it is that of this migration. */
static void name_folder(struct head *h)
{
	struct migration *v = h->moves.now;
	char *whole;

	if (asprintf(&whole, "%s/%s.move.%u", v->folder, h->id.job, v->generation) < 0)
		return;
	free(v->folder);
	v->folder = whole;
}

bool migrate_checked(struct head *h, const struct error *err)
{
	struct migration *v = h->moves.now;

	if (!v || v->phase != CHECKING)
		return false;
	if (err->code != HALE_OK) {
		migrate_give_up(h, err->text);
		return true;
	}
	v->phase = PREPARING;
	v->generation = h->generation + 1;
	/* should it come to nothing, the number is used up */
	h->generation = v->generation;
	h->node_set.coming = v->coming;
	v->began = v->moved_at = clock_seconds();
	if (v->folder)
		name_folder(h);
	migrate_await_all(h);
	head_save(h);
	if (!v->cloned)
		watch_tell(h, "FTB.JL", "FTB_MIGRATE", FTB_INFO, "%s",
			   h->node_set.nodes[v->from].name);
	watch_nodes(h);
	node_set_tell_all(&h->node_set, &(struct message){.type = MSG_MOVE_BEGIN,
							  .id = v->generation,
							  .flags = v->alone ? MOVE_ALONE : 0,
							  .text = v->folder ? v->folder : "",
							  .bytes = v->coming,
							  .len = h->nranks * sizeof(*v->coming)});
	return true;
}

void migrate_name_target(struct head *h)
{
	struct migration *v = h->moves.now;
	size_t len = 0;

	for (uint32_t r = 0; r < h->nranks; r++) {
		v->movers[r].moves |= v->coming[r] != LIVING_NOWHERE &&
				      v->coming[r] != h->node_set.placement.node_of[r];
		v->ranks += v->movers[r].moves;
	}
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		const char *name = h->node_set.nodes[k].name;
		bool any = false;

		for (uint32_t r = 0; r < h->nranks && !any; r++)
			any = v->movers[r].moves && v->coming[r] == k;
		if (any && len + strlen(name) + sizeof(",,…") <= sizeof(v->target))
			len += (size_t)snprintf(v->target + len, sizeof(v->target) - len, "%s%s",
						len ? "," : "", name);
		else if (any) {
			snprintf(v->target + len, sizeof(v->target) - len, ",…");
			return;
		}
	}
}

hale_status_t migrate_begin(struct head *h, struct migrate_wish *w, struct error *err)
{
	struct migration *v = migrate_create(h, w->from);
	hale_status_t status;

	if (!v)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for a migration");
	v->id = w->id;
	v->to = w->to;
	v->folder = w->folder;
	w->folder = NULL;
	status = node_set_elsewhere(&h->node_set, v->from, v->to, v->coming, err);
	if (status != HALE_OK) {
		move_free(h);
		return status;
	}
	if (h->degree > 1)
		clone_keep_apart(h);
	migrate_name_target(h);
	migrate_watch(h);
	node_set_check(&h->node_set, false);
	return HALE_OK;
}
