/* SPDX-License-Identifier: BSD-3-Clause */
/* A migration that another head had under way when it ended (docs/attach.md). Before GO it is taken
 * back. From GO on it goes on, and only forward: GO and RELEASE are written down before anybody
 * hears them, so what is written down holds, whoever has heard it. What is missing the nodes that
 * have attached say:
 *
 *   written down          a node has heard   it hears now
 *   GO                    nothing            GO; RELEASE when all sources have ended, as ever
 *   GO                    GO                 RELEASE when …
 *   RELEASE, or the end   nothing            GO, RELEASE
 *   RELEASE, or the end   GO                 RELEASE
 *
 * docs/models/succeed.pml, run in all its states by tests/spin_succeed.sh. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "base/base.h"
#include "head/head_private.h"
#include "head/migration/migrate_private.h"
#include "head/failover/succession.h"
#include "head/failover/takeover.h"

/* ---- what is written down ---- */

static void put_ranks(const struct head *h, struct json_out *j)
{
	const struct migration *v = h->moves.now;

	json_open_array(j, "ranks");
	for (uint32_t r = 0; r < h->nranks; r++)
		if (v->movers[r].moves)
			json_uint(j, NULL, r);
	json_close_array(j);
	json_open_array(j, "coming");
	for (uint32_t r = 0; r < h->nranks; r++)
		json_int(j, NULL, v->coming[r] == LIVING_NOWHERE ? -1 : (int64_t)v->coming[r]);
	json_close_array(j);
}

static void put_cloned(const struct head *h, struct json_out *j)
{
	const struct migration *v = h->moves.now;

	json_bool(j, "released", v->phase == RELEASING);
	if (!v->cloned)
		return;
	json_double(j, "quiet_at", head_record_real(v->quiet_at));
	json_double(j, "gone_at", head_record_real(v->gone_at));
	json_open_array(j, "sources"); /* and what each has sent */
	for (uint32_t r = 0; r < h->nranks; r++) {
		if (!v->movers[r].moves)
			continue;
		json_uint(j, NULL, v->movers[r].source);
		json_uint(j, NULL, v->movers[r].bytes);
	}
	json_close_array(j);
}

void migrate_put(const struct head *h, struct json_out *j)
{
	const struct migration *v = h->moves.now;

	if (!v || (v->phase != GOING && v->phase != RELEASING))
		return;
	json_open_object(j, "move");
	json_uint(j, "generation", v->generation);
	json_uint(j, "stop", v->stop_id);
	json_uint(j, "from", v->from);
	if (v->folder)
		json_string(j, "folder", v->folder);
	put_ranks(h, j);
	put_cloned(h, j);
	json_uint(j, "bytes", v->bytes);
	json_uint(j, "relayed", v->relayed);
	json_uint(j, "stopped", v->stopped);
	json_uint(j, "rounds", migrate_rounds_most(h));
	json_uint(j, "held", migrate_held_most(h));
	json_double(j, "began", head_record_real(v->began));
	json_double(j, "stopped_at", head_record_real(v->stopped_at));
	json_close_object(j);
}

/* ---- and read ---- */

static uint64_t number(const struct json_value *doc, const char *key)
{
	int64_t n = json_number_int(json_get(doc, key), 0);

	return n > 0 ? (uint64_t)n : 0;
}

/* Of copies whose sources stay. */
static bool read_sources(struct head *h, const struct json_value *ranks,
			 const struct json_value *list)
{
	struct migration *v = h->moves.now;

	v->cloned = list != NULL;
	if (v->cloned && (h->degree == 1 || json_count(list) != 2 * json_count(ranks)))
		return false;
	for (size_t i = 0; v->cloned && i < json_count(ranks); i++) {
		struct mover *m = &v->movers[json_number_int(json_at(ranks, i), 0)];
		int64_t source = json_number_int(json_at(list, 2 * i), -1);

		if (source < 0 || source >= h->nranks)
			return false;
		m->source = (uint32_t)source;
		m->replaces = LIVING_NOWHERE;
		m->bytes = (uint64_t)json_number_int(json_at(list, 2 * i + 1), 0);
		v->to = v->coming[m - v->movers];
	}
	return true;
}

static bool read_ranks(struct head *h, const struct json_value *doc)
{
	const struct json_value *ranks = json_get(doc, "ranks"), *coming = json_get(doc, "coming");
	struct migration *v = h->moves.now;

	if (json_count(coming) != h->nranks || json_count(ranks) == 0)
		return false;
	for (uint32_t r = 0; r < h->nranks; r++) {
		int64_t k = json_number_int(json_at(coming, r), -1);

		if (k < 0 && replicas_is_lost(h, r))
			k = LIVING_NOWHERE;
		else if (k < 0 || k >= h->node_set.count)
			return false;
		v->coming[r] = (uint32_t)k;
	}
	v->phase = json_truth(json_get(doc, "released"), true) ? RELEASING : GOING;
	for (size_t i = 0; i < json_count(ranks); i++) {
		int64_t r = json_number_int(json_at(ranks, i), -1);

		if (r < 0 || r >= h->nranks)
			return false;
		if (v->coming[r] == LIVING_NOWHERE)
			return false;
		v->movers[r].moves = true;
		if (!json_get(doc, "sources") && h->node_set.placement.node_of[r] != v->coming[r])
			v->phase = GOING;
	}
	return read_sources(h, ranks, json_get(doc, "sources"));
}

static void read_figures(struct head *h, const struct json_value *doc)
{
	struct migration *v = h->moves.now;
	uint32_t r = 0;

	while (!v->movers[r].moves)
		r++;
	v->movers[r].steps = number(doc, "rounds");
	v->movers[r].held_rounds = (uint32_t)number(doc, "held");
	v->stop_id = (uint32_t)number(doc, "stop");
	v->bytes = number(doc, "bytes");
	v->relayed = number(doc, "relayed");
	v->stopped = number(doc, "stopped");
	v->began = head_record_since(doc, "began");
	v->stopped_at = head_record_since(doc, "stopped_at");
	v->quiet_at = head_record_since(doc, "quiet_at");
	v->gone_at = head_record_since(doc, "gone_at");
	v->moved_at = clock_seconds();
}

hale_status_t migrate_follow(struct head *h, const struct json_value *doc, struct error *err)
{
	const char *folder = json_text(json_get(doc, "folder"), NULL);
	struct migration *v;

	if (!doc || number(doc, "generation") != h->node_set.generation ||
	    number(doc, "from") >= h->node_set.count)
		return HALE_OK;
	v = migrate_create(h, (uint32_t)number(doc, "from"));
	if (!v || (folder && !(v->folder = strdup(folder))))
		return error_set(err, HALE_ERR_MEMORY, "out of memory for a migration");
	v->generation = h->node_set.generation;
	if (!read_ranks(h, doc))
		return error_set(err, HALE_ERR_IMAGE_CORRUPT,
				 "what the last head of the job has left is damaged (its "
				 "migration)");
	read_figures(h, doc);
	migrate_name_target(h);
	for (uint32_t r = 0; r < h->nranks; r++)
		v->movers[r].moved = v->movers[r].moves && v->phase == RELEASING;
	h->node_set.coming = v->coming;
	h->node_set.let_go = true;
	if (!v->cloned && h->node_set.nodes[v->from].leave.wanted[0])
		node_leave_event(&h->node_set.nodes[v->from], LEAVE_MIGRATES);
	return HALE_OK;
}

/* ---- what nodes have heard ---- */

bool migrate_is_behind(const struct head *h, const struct node *n)
{
	return n->attach.move != 0 && n->attach.move == h->node_set.generation;
}

void migrate_attached(struct head *h, const struct node *n, const struct attach_rank *ranks)
{
	struct migration *v = h->moves.now;

	for (uint32_t r = 0; v && r < h->nranks; r++) {
		struct mover *m = &v->movers[r];

		if (m->moves && v->coming[r] == n->index && v->phase == GOING) {
			m->copy = ranks[r].pid;
			m->copy_ended = (ranks[r].flags & ATTACH_ENDED) != 0;
			m->copy_status = ranks[r].status;
			memcpy(m->position, ranks[r].position, sizeof(m->position));
		} else if (!m->moves && h->node_set.placement.node_of[r] == n->index) {
			m->resumed = (ranks[r].flags & ATTACH_STOPPED) == 0;
		}
	}
}

bool migrate_to_lost(const struct head *h)
{
	const struct migration *v = h->moves.now;

	for (uint32_t r = 0; v && r < h->nranks; r++)
		if (v->movers[r].moves && h->node_set.nodes[v->coming[r]].state == NODE_LOST)
			return true;
	return false;
}

void migrate_go_again(struct head *h)
{
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		struct node *n = &h->node_set.nodes[k];

		if (!n->attach.done || !migrate_is_behind(h, n) || n->attach.move_went)
			continue;
		n->attach.move_went = true;
		node_set_tell(&h->node_set, k,
			      &(struct message){.type = MSG_MOVE_GO, .id = n->attach.move});
	}
}

static void release_again(struct head *h)
{
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		struct node *n = &h->node_set.nodes[k];

		if (!n->attach.done || !migrate_is_behind(h, n))
			continue;
		if (h->moves.now && h->moves.now->folder)
			h->moves.now->awaited[k] = true;
		node_set_tell(
		    &h->node_set, k,
		    &(struct message){.type = MSG_MOVE_RELEASE, .id = n->attach.move_stop});
	}
}

void migrate_clones_go(struct head *h)
{
	struct migration *v = h->moves.now;

	if (!v || !v->cloned || v->phase != GOING)
		return;
	clone_goes(h);
	migrate_release_if_moved(h);
	for (uint32_t r = 0; h->moves.now == v && r < h->nranks; r++) {
		const struct mover *m = &v->movers[r];

		if (!m->moves || !m->copy_ended)
			continue;
		h->node_set.ranks[r].pid = 0;
		head_rank_ended(h, r, WIFSIGNALED(m->copy_status) ? m->copy_status : SIGKILL);
	}
}

void migrate_go_on(struct head *h)
{
	struct migration *v = h->moves.now;

	if (!v || v->phase == RELEASING)
		release_again(h);
	if (!v)
		return;
	v->moved_at = clock_seconds();
	migrate_watch(h);
	for (uint32_t r = 0; v->phase == GOING && r < h->nranks; r++) {
		const struct mover *m = &v->movers[r];

		if (!m->moves || !m->copy_ended)
			continue;
		head_rank_ended(h, r, WIFSIGNALED(m->copy_status) ? m->copy_status : SIGKILL);
		return;
	}
	if (v->phase == RELEASING)
		migrate_over_if_resumed(h);
}
