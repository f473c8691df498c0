/* SPDX-License-Identifier: BSD-3-Clause */
/* A migration from the first round to the change of segments: what ranks and nodes say, and what is
 * done then. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "base/base.h"
#include "ftb/ftb.h"
#include "head/head_private.h"
#include "head/migration/migrate_private.h"
#include "head/failover/succession.h"
#include "head/failover/takeover.h"
#include "head/watch/watch_private.h"

enum { STREAMS = 4, FRESHENINGS = 4 };

/* A rest that has grown by more than this factor is worth another round. */
#define GROWN	      1.25
#define ALONE_SECONDS 0.25
#define GRACE_SECONDS 0.3 /* for the sentence of a rank whose copy has ended */

/* ---- the change ---- */

static bool all_movers(const struct head *h, size_t flag)
{
	for (uint32_t r = 0; r < h->nranks; r++)
		if (h->moves.now->movers[r].moves &&
		    !*((const bool *)&h->moves.now->movers[r] + flag))
			return false;
	return true;
}

/* Does the process stop? */
static bool takes_part(const struct head *h, uint32_t process)
{
	return !h->moves.now->alone || clone_mover(h, process) != process;
}

static bool all_stopped(const struct head *h)
{
	for (uint32_t r = 0; r < h->nranks; r++)
		if (head_rank_alive(h, r) && takes_part(h, r) && !h->moves.now->movers[r].stopped)
			return false;
	return true;
}

/* Sends GO when all copies are whole and all ranks stand still. A rank that still ran would look
 * for its peers where they no longer are. */
static void go_if_whole(struct head *h)
{
	struct migration *v = h->moves.now;

	if (v->quiet_at == 0 && all_stopped(h))
		v->quiet_at = clock_seconds();
	if (v->doomed_at > 0 || !all_movers(h, offsetof(struct mover, whole)) || !all_stopped(h))
		return;
	if (head_superseded(h))
		return;
	v->phase = GOING;
	v->moved_at = v->gone_at = clock_seconds();
	if (!v->alone)
		h->node_set.generation = v->generation;
	h->node_set.let_go = true;
	head_save(h);
	node_set_tell_all(&h->node_set,
			  &(struct message){.type = MSG_MOVE_GO, .id = v->generation});
	if (!v->cloned) /* no source has to end */
		return;
	clone_goes(h);
	migrate_release_if_moved(h);
}

bool migrate_all_resumed(const struct head *h)
{
	for (uint32_t r = 0; r < h->nranks; r++)
		if (!h->moves.now->movers[r].moves && head_rank_alive(h, r) && takes_part(h, r) &&
		    !h->moves.now->movers[r].resumed)
			return false;
	return true;
}

/* A migration by files is over only when all its files are removed: whoever asked for it may want
 * the disk back. */
void migrate_over_if_resumed(struct head *h)
{
	if (migrate_all_resumed(h) && (!h->moves.now->folder || migrate_all_answered(h)))
		migrate_done(h);
}

/* The copies are the ranks from then on. */
void migrate_release_if_moved(struct head *h)
{
	struct migration *v = h->moves.now;

	if (!all_movers(h, offsetof(struct mover, moved)) || head_superseded(h))
		return;
	for (uint32_t r = 0; r < h->nranks; r++)
		if (v->movers[r].moves)
			node_set_moved(&h->node_set, r, v->movers[r].copy, v->movers[r].position);
	if (h->degree > 1)
		clone_follow_move(h);
	node_set_move_over(&h->node_set, v->from);
	head_partition_moved(h);
	v->phase = RELEASING;
	v->moved_at = clock_seconds();
	if (v->folder)
		migrate_await_all(h);
	head_save(h);
	node_set_tell_all(&h->node_set,
			  &(struct message){.type = MSG_MOVE_RELEASE, .id = v->stop_id});
	if (!v->cloned)
		watch_tell(h, "FTB.NLA", "FTB_MIGRATE_PIC", FTB_INFO, "%s",
			   h->node_set.nodes[v->from].name);
	watch_node(h, v->from); /* its target is told of when they run there (FTB_MIGRATE_IPT) */
	migrate_over_if_resumed(h);
}

/* From GO on the copy is the rank. So the end of the source process does no harm, whatever its
 * cause. It stood still, and its agent has already passed on its output. */
bool migrate_ended(struct head *h, uint32_t rank, int status)
{
	struct migration *v = h->moves.now;

	if (!v || v->phase != GOING || !v->movers[rank].moves || v->movers[rank].moved)
		return false;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_MOVED)
		log_info("the process that rank %u has moved from was ended by somebody else",
			 rank);
	loop_timer_clear(&h->loop, &h->ranks[rank].lost);
	v->movers[rank].moved = true;
	migrate_release_if_moved(h);
	return true;
}

/* ---- rounds ---- */

/* All keep for the copy what they send from now on; who computes is interrupted for a moment. */
static void announce(struct head *h)
{
	struct migration *v = h->moves.now;

	v->phase = ANNOUNCING;
	v->moved_at = clock_seconds();
	h->ckpt.id++;
	for (uint32_t r = 0; r < h->nranks; r++)
		if (v->movers[r].moves)
			node_set_tell_all(&h->node_set, &(struct message){.type = MSG_MOVE_ROUND,
									  .rank = r,
									  .id = h->ckpt.id,
									  .base = 1,
									  .flags = CKPT_ANNOUNCE});
}

static void stop_all(struct head *h)
{
	struct migration *v = h->moves.now;

	if (head_any_finalized(h) || !head_all_ready(h)) {
		migrate_give_up(h, "the program is about to end");
		return;
	}
	if (v->alone && v->phase != ANNOUNCING) {
		announce(h);
		return;
	}
	v->phase = STOPPING;
	v->stop_id = ++h->ckpt.id;
	v->stopped_at = v->moved_at = clock_seconds();
	head_profile_turn(h);
	node_set_tell_all(&h->node_set, &(struct message){.type = MSG_MOVE_STOP, .id = v->stop_id});
}

static void start_round(struct head *h, uint32_t rank)
{
	struct mover *m = &h->moves.now->movers[rank];

	const struct places *p = &h->moves.now->places[h->moves.now->coming[rank]];

	m->running = true;
	m->id = ++h->ckpt.id;
	m->began = clock_seconds();
	m->held_rounds += m->held > 0;
	/* a copy that does not run yet counts where its source is */
	node_set_tell(&h->node_set, h->node_set.placement.node_of[rank],
		      &(struct message){.type = MSG_MOVE_ROUND,
					.rank = rank,
					.id = m->id,
					.base = m->steps > 0,
					.flags = m->held > 0 ? CKPT_HOLD : 0,
					.bytes = p->bytes,
					.len = p->len});
}

static void start_copy(struct head *h, uint32_t rank)
{
	struct mover *m = &h->moves.now->movers[rank];

	m->begun = m->running = true;
	node_set_tell(&h->node_set, h->moves.now->coming[rank],
		      &(struct message){.type = MSG_MOVE_SINK,
					.rank = rank,
					.text = m->program ? m->program : h->program->path,
					.name = ""});
}

/* Movers that were ready early have written memory since, which would lengthen the stop. Those with
 * too much of it get another round. The stop sends as the rounds do, at most STREAMS movers at a
 * time. */
static bool freshen(struct head *h)
{
	struct migration *v = h->moves.now;
	double now = clock_seconds(), at_once = v->ranks > STREAMS ? (double)v->ranks / STREAMS : 1;
	bool any = false;

	if (v->freshened == FRESHENINGS || v->alone)
		return false;
	for (uint32_t r = 0; r < h->nranks; r++) {
		struct mover *m = &v->movers[r];

		double rest = m->moves ? live_rest(m->step, m->steps, now - m->began) : 0;

		m->again = rest * at_once > LIVE_DOWNTIME && rest > m->rest * GROWN &&
			   m->steps < MIGRATE_STEPS_MAX;
		any = any || m->again;
	}
	v->freshened += any;
	return any;
}

/* Starts rounds, at most STREAMS at a time. When little is left to send for every mover, stops all
 * ranks. */
static void next(struct head *h)
{
	struct migration *v = h->moves.now;
	uint32_t running = 0, open = 0;

	for (uint32_t r = 0; r < h->nranks; r++)
		running += v->movers[r].running;
	for (uint32_t r = 0; r < h->nranks; r++) {
		struct mover *m = &v->movers[r];

		if (!m->moves || (m->small && !m->again))
			continue;
		open++;
		if (m->running || running == STREAMS)
			continue;
		running++;
		m->again = false;
		if (m->begun)
			start_round(h, r);
		else
			start_copy(h, r);
	}
	if (open == 0 && running == 0 && freshen(h))
		next(h);
	else if (open == 0 && running == 0)
		stop_all(h);
}

/* A last round for which nobody stands still may take its time: rounds before it only see to it that
 * others do not keep their messages for long. */
static bool is_small_enough(const struct mover *m)
{
	return m->steps >= 2 || m->step[0].seconds < ALONE_SECONDS;
}

static void plan(struct mover *m, bool alone)
{
	const struct live_bounds bounds = {.held = m->held};

	switch (live_plan(m->step, m->steps, &bounds, &m->rest)) {
	case LIVE_LAST:
		m->small = true;
		break;
	case LIVE_HOLD:
		m->held += !alone;
		break;
	case LIVE_AGAIN:
		break;
	}
	m->small = m->small || m->steps == MIGRATE_STEPS_MAX || (alone && is_small_enough(m));
}

static void take_round(struct head *h, uint32_t rank, const struct proto_ckpt *p)
{
	struct migration *v = h->moves.now;
	struct mover *m = &v->movers[rank];

	v->bytes += p->bytes;
	m->bytes += p->bytes;
	m->same += p->same;
	v->stopped += v->phase >= STOPPING ? p->bytes : 0;
	/* the file of the rank is whole, and with it the rank's part in the stop */
	if (v->folder && v->phase == STOPPING && p->id == v->stop_id && !m->begun)
		start_copy(h, rank);
	if (v->phase != AHEAD || !m->running || p->id != m->id)
		return;
	m->running = false;
	if (m->steps < MIGRATE_STEPS_MAX)
		m->step[m->steps++] =
		    (struct live_step){p->bytes + p->same, p->seconds, p->interval};
	if (!m->small)
		plan(m, v->alone);
	next(h);
}

static void take_failed(struct head *h, uint32_t rank, const struct proto_ckpt *p)
{
	struct migration *v = h->moves.now;
	char why[PROTO_TEXT + 32];

	if (v->phase > STOPPING ||
	    p->id != (v->phase == STOPPING ? v->stop_id : v->movers[rank].id))
		return;
	snprintf(why, sizeof(why), "rank %u: %s", rank,
		 p->text[0] ? p->text : hale_status_name((hale_status_t)p->status));
	migrate_give_up(h, why);
}

static void take_stopped(struct head *h, uint32_t rank)
{
	h->moves.now->movers[rank].stopped = true;
	go_if_whole(h);
}

bool migrate_packet(struct head *h, uint32_t rank, const union proto_packet *p)
{
	struct migration *v = h->moves.now;

	if (!migrate_busy(h))
		return false;
	if (v->phase != CANCELLING)
		v->moved_at = clock_seconds();
	switch (p->type) {
	case PROTO_CKPT_WRITTEN:
		take_round(h, clone_mover(h, rank), &p->ckpt);
		break;
	case PROTO_CKPT_FAILED:
		take_failed(h, clone_mover(h, rank), &p->ckpt);
		break;
	case PROTO_CKPT_STOPPED:
		if ((uint32_t)p->plain.value == v->stop_id && v->phase >= STOPPING &&
		    v->phase < CANCELLING)
			take_stopped(h, rank);
		break;
	case PROTO_KEPT:
		if (v->phase == ANNOUNCING && clone_mover(h, rank) != rank)
			stop_all(h);
		break;
	case PROTO_JOINED:
		if (v->phase == RELEASING && clone_mover(h, rank) != rank) {
			v->movers[rank].resumed = true;
			migrate_over_if_resumed(h);
		}
		break;
	case PROTO_CKPT_RESUMED:
		if (v->alone && p->ckpt.id == v->stop_id)
			v->pause = (double)p->ckpt.pause_ns * 1e-9;
		else if (v->phase == RELEASING && p->ckpt.id == v->stop_id) {
			v->movers[rank].resumed = true;
			migrate_over_if_resumed(h);
		}
		break;
	default:
		return false;
	}
	return true;
}

/* ---- what nodes say ---- */

static void take_ready(struct head *h, const struct node *n, const struct message *m)
{
	struct migration *v = h->moves.now;
	char why[512];

	if (v->phase != PREPARING || m->id != v->generation)
		return;
	v->awaited[n->index] = false;
	free(v->places[n->index].bytes);
	v->places[n->index] = (struct places){malloc(m->len + 1), m->len};
	if (v->places[n->index].bytes)
		memcpy(v->places[n->index].bytes, m->bytes, m->len);
	else
		v->places[n->index].len = 0;
	if (m->value != HALE_OK) {
		snprintf(why, sizeof(why), "node %s: %.400s", n->name, m->text);
		migrate_give_up(h, why);
	} else if (migrate_all_answered(h)) {
		v->phase = AHEAD;
		if (v->folder)
			stop_all(h);
		else
			next(h);
	}
}

static void take_program(struct head *h, const struct message *m)
{
	struct mover *k = &h->moves.now->movers[m->rank];

	free(k->program);
	k->program = strdup(m->text);
}

static void take_spawned(struct head *h, const struct node *n, const struct message *m)
{
	struct migration *v = h->moves.now;
	char why[512];

	if (v->phase != AHEAD && v->phase != STOPPING)
		return;
	if (m->value == 0) {
		snprintf(why, sizeof(why), "node %s: %.400s", n->name, m->text);
		migrate_give_up(h, why);
		return;
	}
	v->movers[m->rank].copy = m->value;
	if (v->phase == AHEAD)
		start_round(h, m->rank);
}

static void take_whole(struct head *h, const struct message *m)
{
	struct migration *v = h->moves.now;
	struct mover *k = &v->movers[m->rank];

	if (v->phase != STOPPING || m->id != v->stop_id || m->value != k->copy)
		return;
	k->whole = true;
	memcpy(k->position, m->position, sizeof(k->position));
	go_if_whole(h);
}

/* While nobody depends on it, all stay: when the rank has said why, or soon. Later it was the rank,
 * and was killed: a good end its agent tells when all are released. */
static void take_copy_ended(struct head *h, const struct node *n, const struct message *m)
{
	struct migration *v = h->moves.now;

	if (v->phase < GOING && v->doomed_at == 0) {
		v->doomed_at = clock_seconds() + GRACE_SECONDS;
		snprintf(v->why, sizeof(v->why), "the copy of rank %u on node %s has ended (%s %d)",
			 m->rank, n->name, WIFSIGNALED(m->value) ? "signal" : "status",
			 WIFSIGNALED(m->value) ? WTERMSIG(m->value) : WEXITSTATUS(m->value));
	} else if (v->phase == GOING) {
		head_rank_ended(h, m->rank, WIFSIGNALED(m->value) ? m->value : SIGKILL);
	}
}

void migrate_message(void *head, const struct node *n, const struct message *m)
{
	struct head *h = head;
	struct migration *v = h->moves.now;

	if (v && m->rank < h->nranks && m->type == MSG_MOVE_PROGRAM &&
	    n->index == h->node_set.placement.node_of[m->rank])
		take_program(h, m);
	if (v && v->phase != CANCELLING &&
	    (m->type == MSG_MOVE_DATA || m->type == MSG_MOVE_TAKEN || m->type == MSG_MOVE_WANT))
		v->moved_at = clock_seconds();
	if (v && m->type == MSG_MOVE_DATA)
		v->relayed += m->len;
	if (!v || m->type >= MSG_MOVE_PROGRAM ||
	    (m->type != MSG_MOVE_READY && m->type != MSG_MOVE_CANCELLED &&
	     (m->rank >= h->nranks || !v->movers[m->rank].moves || v->coming[m->rank] != n->index)))
		return;
	switch (m->type) {
	case MSG_MOVE_READY:
		take_ready(h, n, m);
		break;
	case MSG_MOVE_SPAWNED:
		take_spawned(h, n, m);
		break;
	case MSG_MOVE_HELLO:
		take_whole(h, m);
		break;
	case MSG_MOVE_ENDED:
		take_copy_ended(h, n, m);
		break;
	default:
		if (v->phase == CANCELLING && m->id == v->generation) {
			v->awaited[n->index] = false;
			migrate_cancelled(h);
		} else if (v->phase == RELEASING && m->id == v->generation) {
			v->awaited[n->index] = false;
			migrate_over_if_resumed(h);
		}
		break;
	}
}

bool migrate_node_lost(struct head *h, const struct node *n, uint32_t *rank)
{
	struct migration *v = h->moves.now;
	char why[128];

	if (!v || v->phase < PREPARING)
		return false;
	if (v->phase == CANCELLING) {
		if (v->cloned || n->index != v->from)
			migrate_cancelled(h);
		return false;
	}
	for (uint32_t r = 0; r < h->nranks; r++) {
		if (!v->movers[r].moves || v->coming[r] != n->index)
			continue;
		*rank = r;
		if (v->phase == GOING)
			return true;
		snprintf(why, sizeof(why), "node %s is lost", n->name);
		migrate_give_up(h, why);
		return false;
	}
	for (uint32_t r = 0; r < h->nranks; r++)
		if (h->node_set.placement.node_of[r] == n->index)
			return false;
	if (v->phase == RELEASING)
		migrate_over_if_resumed(h);
	return false;
}

void migrate_node_renewed(struct head *h, const struct node *n, const char *why)
{
	struct migration *v = h->moves.now;
	bool concerns = v && v->phase >= PREPARING && v->from == n->index;

	for (uint32_t r = 0; v && v->phase >= PREPARING && r < h->nranks; r++)
		concerns = concerns || (v->movers[r].moves && v->coming[r] == n->index);
	if (concerns)
		migrate_give_up(h, why);
}
