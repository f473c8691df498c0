/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that move to another node while they run, the nodes' side (docs/migration.md, last
 * section): copies are started, streams are passed on between ranks here and copies elsewhere, and
 * the segment changes. What is to be done when, the head says; migrate.c has its states. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/base.h"
#include "image/live/live_wire.h"
#include "agent/agent_private.h"
#include "node/living.h"

/* Of that the ranks stand still three quarters (HOLD_NS, ckpt/migrate.c). */
#define HOLD_EVERY 0.08

/* ---- beginning ---- */

/* Pipes of processes that have moved, or are being ended, are read to their end after their segment
 * is gone: what is counted of them counts no more. */
static struct mailbox nowhere;

static void leave_mailbox(struct mailbox **box, const struct segment *s)
{
	const char *at = (const char *)*box, *begin = (const char *)s;

	if (at && s && at >= begin && at < begin + s->bytes)
		*box = &nowhere;
}

static void leave_segment(struct agent *a, const struct segment *s)
{
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		for (int i = 0; i < 2; i++)
			leave_mailbox(&a->ranks[r].out[i].mailbox, s);
	leave_mailbox(&a->streams.stdin_sink.mailbox, s);
}

void agent_move_drop(struct agent *a)
{
	struct agent_move *v = &a->move;

	if (v->id == 0)
		return;
	loop_timer_clear(&a->loop, &v->holding);
	agent_files_end(a);
	agent_direct_end(a);
	agent_relays_end(a);
	leave_segment(a, v->coming.segment);
	leave_segment(a, v->old.segment);
	agent_view_drop(a, &v->coming);
	agent_view_drop(a, &v->old);
	v->id = 0;
	v->went = v->cancelling = false;
}

/* What is to be started for a rank: it may have been launched as a script. One that has been
 * replaced on the disk is not it any more; then the sink says so. */
static void tell_program(struct agent *a, uint32_t rank)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe",
		 (int)a->ranks[agent_move_source(a, rank)].member);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	if (n > 0 && access(path, X_OK) == 0)
		agent_send(a,
			   &(struct message){.type = MSG_MOVE_PROGRAM, .rank = rank, .text = path});
}

static hale_status_t check_shells(struct agent *a, struct error *err)
{
	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		if (!agent_moves_out(a, r))
			continue;
		if (!agent_is_cloned(a, r) && a->ranks[r].member != a->ranks[r].pid &&
		    agent_shell_check(a, r, err) != HALE_OK)
			return err->code;
		tell_program(a, r);
	}
	return HALE_OK;
}

static hale_status_t begin(struct agent *a, const struct message *m, struct error *err)
{
	struct agent_move *v = &a->move;
	uint32_t nranks = a->setup.nranks, *node_of;
	hale_status_t status;

	agent_move_drop(a);
	if (m->len != nranks * sizeof(*node_of) || !a->view.node_of)
		return error_set(err, HALE_ERR_PROTOCOL, "the head's layout is none");
	v->coming = v->old = (struct agent_view){.segment_fd = -1, .slot = -1};
	for (unsigned i = 0; i < AGENT_PLACES; i++)
		v->direct[i].fd = -1;
	v->id = m->id;
	v->stop_id = 0;
	node_of = malloc(m->len); /* aligned */
	if (!agent_relays_make(a) || !node_of) {
		free(node_of);
		return error_set(err, HALE_ERR_MEMORY, "out of memory for a migration");
	}
	memcpy(node_of, m->bytes, m->len);
	status = m->flags & MOVE_ALONE
		     ? agent_layout_shared(a, node_of, &v->coming, err)
		     : agent_layout_beside(a, m->id, node_of, &v->coming, err);
	free(node_of);
	if (status == HALE_OK)
		status = check_shells(a, err);
	if (status == HALE_OK && *m->text)
		return agent_files_begin(a, m->text, err);
	return status == HALE_OK ? agent_relays_begin(a, err) : status;
}

static void take_begin(struct agent *a, const struct message *m)
{
	struct error err = {HALE_OK, ""};
	struct reach_place place[AGENT_PLACES];
	unsigned places = 0;
	bool in = false;

	if (begin(a, m, &err) != HALE_OK)
		agent_move_drop(a);
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		in = in || agent_moves_in(a, r);
	if (in && !*m->text)
		places = agent_direct_listen(a, place);
	agent_send(a, &(struct message){.type = MSG_MOVE_READY,
					.id = m->id,
					.value = (int32_t)err.code,
					.text = err.text,
					.bytes = place,
					.len = places * sizeof(place[0])});
}

/* The view of tomorrow holds for who belongs to it: its segment, its place among its node's ranks.
 */
void agent_move_spawn(struct agent *a, const struct message *m, const char *sink)
{
	struct agent_move *v = &a->move;
	struct error err = {HALE_OK, ""};
	struct message spawn = *m;

	spawn.name = sink;
	if (!agent_moves_in(a, m->rank) || a->ranks[m->rank].pid > 0) {
		error_set(&err, HALE_ERR_PROTOCOL, "rank %u is not to move here", m->rank);
	} else {
		agent_view_swap(a, &v->coming);
		agent_spawn_rank(a, &spawn, &err);
		agent_view_swap(a, &v->coming);
	}
	if (err.code != HALE_OK)
		agent_move_not_spawned(a, m->rank, &err);
	else
		agent_send(a, &(struct message){.type = MSG_MOVE_SPAWNED,
						.rank = m->rank,
						.value = a->ranks[m->rank].pid,
						.flags = a->ranks[m->rank].stood,
						.text = ""});
}

void agent_move_not_spawned(struct agent *a, uint32_t rank, const struct error *err)
{
	agent_send(a, &(struct message){.type = MSG_MOVE_SPAWNED, .rank = rank, .text = err->text});
}

/* An older copy of the same rank that runs here: a shadow that is to jump, which the new copy is
 * made beside. 0: there is none. */
static pid_t older_copy(const struct agent *a, uint32_t process)
{
	uint32_t ranks = a->setup.nranks / a->setup.degree;

	for (uint32_t p = living_rank_of(process, ranks); p < a->setup.nranks; p += ranks)
		if (agent_is_cloned(a, process) && agent_has(a, p) &&
		    p != agent_move_source(a, process))
			return a->ranks[p].member;
	return 0;
}

static void take_sink(struct agent *a, const struct message *m)
{
	pid_t older = m->rank < a->setup.nranks ? older_copy(a, m->rank) : 0;
	char sink[128], pid[16] = "";

	if (older > 0)
		snprintf(pid, sizeof(pid), "%d", (int)older);
	snprintf(sink, sizeof(sink), "live:%s@%s", pid, a->move.name);
	if (a->move.folder[0] && agent_moves_in(a, m->rank))
		agent_file_sink(a, m);
	else
		agent_move_spawn(a, m, sink);
}

/* ---- rounds and the stop ---- */

static void ask(struct agent *a, uint32_t rank, uint32_t base, uint32_t flags)
{
	struct mailbox *box = agent_mailbox(a, agent_move_source(a, rank));
	char path[PATH_MAX];

	flags |= agent_is_cloned(a, rank) ? CKPT_CLONE : 0;
	agent_file_path(a, rank, path);
	if (flags & CKPT_HELD)
		snprintf(box->ckpt_path, sizeof(box->ckpt_path), "%.511s", path);
	else
		snprintf(box->ckpt_path, sizeof(box->ckpt_path), "@%s", a->move.name);
	atomic_store(&box->ckpt_base, base);
	atomic_store(&box->ckpt_flags, flags);
}

static void ring(struct agent *a, uint32_t rank, uint32_t id)
{
	rank = agent_move_source(a, rank);
	atomic_store(&agent_mailbox(a, rank)->ckpt_wanted, id);
	agent_signal_member(a, rank, PROTO_CKPT_SIGNAL);
	mailbox_ring_slow(agent_mailbox(a, rank));
}

/* Ranks that write faster than their streams send are made slower, all of a node at the same times:
 * so those that wait for each other lose no more time than each of them. A held round, which begins
 * with a hold, waits for that time. */
static void hold_again(void *arg)
{
	struct agent *a = arg;
	bool any = false;

	for (uint32_t r = 0; a->move.stop_id == 0 && r < a->setup.nranks; r++) {
		struct agent_relay *l = &a->move.relays[r];

		uint32_t from = agent_move_source(a, r);

		if (!agent_moves_out(a, r) || !l->held || a->ranks[from].pid == 0)
			continue;
		any = true;
		if (l->due) {
			l->due = false;
			ask(a, r, 1, CKPT_LIVE | CKPT_HOLD);
			ring(a, r, l->round_id);
			continue;
		}
		atomic_fetch_add(&agent_mailbox(a, from)->ckpt_hold, 1);
		agent_signal_member(a, from, PROTO_CKPT_SIGNAL);
		mailbox_ring_slow(agent_mailbox(a, from));
	}
	if (any)
		loop_timer_set(&a->loop, &a->move.holding, HOLD_EVERY, hold_again, a);
}

static void take_round(struct agent *a, const struct message *m)
{
	struct agent_relay *l = &a->move.relays[m->rank];

	if (m->flags & CKPT_ANNOUNCE)
		agent_kick(a);
	if (!agent_moves_out(a, m->rank) || a->ranks[agent_move_source(a, m->rank)].pid == 0)
		return;
	a->last_id = m->id;
	if (m->flags & CKPT_ANNOUNCE) {
		ask(a, m->rank, m->rank + 1, CKPT_ANNOUNCE);
		ring(a, m->rank, m->id);
		return;
	}
	l->held = l->due = (m->flags & CKPT_HOLD) != 0;
	l->round_id = m->id;
	if (m->base == 0) {
		if (!agent_direct_call(a, m->rank, m->bytes, m->len))
			agent_relay_decided(a, m->rank, true, -1);
	} else if (!l->held) {
		ask(a, m->rank, m->base, CKPT_LIVE);
		ring(a, m->rank, m->id);
	} else if (!a->move.holding.armed) {
		hold_again(a);
	}
}

void agent_move_first_round(struct agent *a, uint32_t rank, bool given)
{
	if (!agent_moves_out(a, rank) || a->ranks[agent_move_source(a, rank)].pid == 0)
		return;
	ask(a, rank, 0, CKPT_LIVE | (given ? CKPT_GIVEN : 0));
	ring(a, rank, a->move.relays[rank].round_id);
}

/* It has something with it by now that would be left behind. */
static void stop_failed(struct agent *a, uint32_t rank, uint32_t id, const struct error *err)
{
	struct proto_ckpt p = {.type = PROTO_CKPT_FAILED, .id = id, .status = (int32_t)err->code};

	snprintf(p.text, sizeof(p.text), "%s", err->text);
	agent_send(
	    a, &(struct message){.type = MSG_PACKET, .rank = rank, .bytes = &p, .len = sizeof(p)});
}

static void take_stop(struct agent *a, const struct message *m)
{
	struct error err;
	bool files = a->move.folder[0] != '\0', alone = agent_move_is_alone(a);
	uint32_t last = CKPT_STOP | CKPT_LIVE | (files ? CKPT_HELD : 0) | (alone ? CKPT_ALONE : 0);

	a->last_id = m->id;
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		if (agent_has(a, r) && agent_moves_out(a, r) &&
		    agent_shell_halt(a, r, &err) != HALE_OK)
			stop_failed(a, r, m->id, &err);
	/* every mailbox before the first signal, as for a checkpoint */
	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		if (!agent_has(a, r) || alone)
			continue;
		ask(a, r, files ? 0 : 1, agent_moves_out(a, r) ? last : CKPT_STOP);
		a->move.relays[r].made = files && agent_moves_out(a, r);
		a->ranks[r].stopped = !agent_moves_out(a, r);
	}
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		if (agent_is_cloned(a, r) && agent_moves_out(a, r))
			ask(a, r, 1, last);
	a->move.stop_id = m->id;
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		if (alone ? agent_is_cloned(a, r) && agent_moves_out(a, r)
			  : agent_has(a, r) && a->ranks[r].pid > 0)
			ring(a, r, m->id);
}

/* ---- the change ---- */

/* Its WELCOME waits until all copies are whole: until then all can stay. */
void agent_move_take_hello(struct agent *a, struct agent_conn *c, const struct proto_hello *h)
{
	struct agent_rank *r = &a->ranks[h->rank];
	struct agent_relay *l = &a->move.relays[h->rank];
	struct message m = {
	    .type = MSG_MOVE_HELLO, .rank = h->rank, .value = c->peer, .id = h->restored};

	if (!h->restored || r->pid != c->peer || r->met)
		return;
	c->rank = h->rank;
	r->conn = c;
	r->member = c->peer;
	r->met = true;
	r->mpi = h->mpi != 0;
	r->initialized = true;
	memcpy(l->position, h->position, sizeof(l->position));
	memcpy(m.position, h->position, sizeof(m.position));
	segment_mailbox(a->move.coming.segment, h->rank)->own_fd[0] =
	    h->own_fd > 0 ? h->own_fd : -1;
	agent_send(a, &m);
}

void agent_move_take_end(struct agent *a, uint32_t rank, int status)
{
	agent_send(
	    a, &(struct message){.type = MSG_MOVE_ENDED, .rank = rank, .value = (int32_t)status});
}

/* The counters of streams go on where they were. */
static void carry_streams(struct agent *a, uint32_t rank, const uint64_t position[3])
{
	struct mailbox *to = agent_mailbox(a, rank);
	struct agent_rank *r = &a->ranks[rank];

	for (int i = 0; i < 3; i++)
		atomic_store(&to->stream_taken[i], position[i]);
	for (int i = 0; i < 2; i++)
		r->out[i].mailbox = to;
	if (rank == 0)
		a->streams.stdin_sink.mailbox = to;
}

/* All copies are let go: it will not be the rank again. */
static void let_end(struct mailbox *box, uint32_t id)
{
	atomic_store(&box->ckpt_moved, id);
	mailbox_ring_slow(box);
}

static void take_go(struct agent *a, const struct message *m)
{
	struct agent_move *v = &a->move;

	if (v->went || m->id != v->id)
		return;
	agent_view_swap(a, &v->coming);
	v->old = v->coming;
	v->coming = (struct agent_view){.segment_fd = -1, .slot = -1};
	v->went = true;
	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		bool was_here = v->old.node_of[r] == a->setup.node;
		uint64_t position[3];

		if (was_here && !agent_has(a, r))
			let_end(segment_mailbox(v->old.segment, r), v->stop_id);
		if (!agent_has(a, r))
			continue;
		for (int i = 0; was_here && i < 3; i++)
			position[i] =
			    atomic_load(&segment_mailbox(v->old.segment, r)->stream_taken[i]);
		carry_streams(a, r, was_here ? position : v->relays[r].position);
		if (!was_here) /* before it looks who lives */
			atomic_store(&agent_mailbox(a, r)->lost, 0);
		/* The copy's output waits until all that the old process printed is taken. */
		for (int i = 0; !was_here && i < 2; i++)
			loop_remove(&a->loop, &a->ranks[r].out[i].source);
		if (!was_here)
			agent_kept_begin(a, r, v->relays[r].position);
		if (!was_here && a->ranks[r].conn)
			agent_conn_welcome(a, a->ranks[r].conn, r);
	}
	agent_weights_place(a);
}

static void take_release(struct agent *a, const struct message *m)
{
	struct agent_move *v = &a->move;
	bool files = v->folder[0] != '\0', alone = agent_move_is_alone(a);
	uint32_t id = v->id;

	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		struct mailbox *box;

		if (!agent_has(a, r))
			continue;
		if (v->old.node_of[r] != a->setup.node) {
			for (int i = 0; i < 2; i++)
				stream_resume(&a->ranks[r].out[i]);
			continue;
		}
		if (alone)
			continue;
		box = segment_mailbox(v->old.segment, r);
		/* its descriptors, until it writes them there itself */
		memcpy(agent_mailbox(a, r)->own_fd, box->own_fd, sizeof(box->own_fd));
		if (a->ranks[r].conn)
			agent_conn_welcome(a, a->ranks[r].conn, r);
		atomic_store(&box->ckpt_rejoin, 1);
		atomic_store(&box->ckpt_released, m->id);
		mailbox_ring_slow(box);
	}
	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		if (v->old.node_of[r] != a->setup.node || agent_has(a, r))
			continue;
		agent_conn_drop(a, &a->ranks[r]);
		a->ranks[r].group = 0;
		supervisor_watch(&a->supervisor, r, 0);
	}
	agent_move_drop(a);
	if (alone)
		agent_kick(a);
	if (files)
		agent_send(a, &(struct message){.type = MSG_MOVE_CANCELLED, .id = id});
	agent_reap_soon(a); /* copies that have ended before */
}

/* ---- the way back ---- */

static bool copies_left(struct agent *a)
{
	bool left = false;

	for (uint32_t r = 0; r < a->setup.nranks; r++)
		if (agent_moves_in(a, r))
			left = !agent_clear_rank(a, r) || left;
	return left;
}

void agent_move_end_copies(void *arg)
{
	struct agent *a = arg;
	const double again = 0.002;

	a->end.waiting = BOOK_NOTHING;
	if (a->move.id == 0)
		return;
	agent_reap(a);
	if (copies_left(a)) {
		a->end.waiting = BOOK_CANCELLING;
		loop_timer_set(&a->loop, &a->end.clear, again, agent_move_end_copies, a);
		return;
	}
	/* nobody reads them any more; what a rank is about to make goes when it is over */
	agent_files_remove(a);
	agent_send(a, &(struct message){.type = MSG_MOVE_CANCELLED, .id = a->move.id});
}

/* No copy is left anywhere: the ranks hear it by their streams and by their mailboxes. */
static void take_over(struct agent *a, const struct message *m)
{
	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		struct mailbox *box;

		if (!agent_has(a, r) || !a->view.segment)
			continue;
		if (agent_moves_out(a, r) && a->move.relays[r].source.fd >= 0)
			live_say(a->move.relays[r].source.fd, LIVE_DEAD, HALE_OK, NULL);
		agent_shell_resume(a, r);
		a->ranks[r].stopped = false;
		box = agent_mailbox(a, r);
		atomic_store(&box->ckpt_cancelled, m->id);
		mailbox_ring_slow(box);
		/* a connection that was cut says nothing of its own for half a minute */
		if (agent_moves_out(a, r) && a->move.relays[r].watched >= 0)
			shutdown(a->move.relays[r].watched, SHUT_RDWR);
	}
	agent_move_drop(a);
}

bool agent_move_take(struct agent *a, const struct message *m)
{
	bool both =
	    m->type == MSG_MOVE_DATA || m->type == MSG_MOVE_TAKEN || m->type == MSG_MOVE_WANT;
	bool of_rank = both || m->type == MSG_MOVE_SINK || m->type == MSG_MOVE_ROUND;

	if (m->type == MSG_MOVE_BEGIN) {
		take_begin(a, m);
		return true;
	}
	if (m->type < MSG_MOVE_SINK || (m->type > MSG_MOVE_OVER && !both))
		return false;
	/* of one that is over here */
	if (a->move.id == 0 && m->type == MSG_MOVE_CANCEL)
		agent_send(a, &(struct message){.type = MSG_MOVE_CANCELLED, .id = m->id});
	if (a->move.id == 0 && m->type == MSG_MOVE_OVER)
		take_over(a, m);
	if (a->move.id == 0 || (of_rank && m->rank >= a->setup.nranks))
		return true;
	switch (m->type) {
	case MSG_MOVE_SINK:
		take_sink(a, m);
		break;
	case MSG_MOVE_ROUND:
		take_round(a, m);
		break;
	case MSG_MOVE_STOP:
		take_stop(a, m);
		break;
	case MSG_MOVE_GO:
		take_go(a, m);
		break;
	case MSG_MOVE_RELEASE:
		take_release(a, m);
		break;
	case MSG_MOVE_CANCEL:
		agent_move_end_copies(a);
		break;
	case MSG_MOVE_OVER:
		take_over(a, m);
		break;
	default:
		if (a->move.relays && m->id == a->move.id && a->move.folder[0])
			agent_file_take(a, m);
		else if (a->move.relays && m->id == a->move.id)
			agent_relay_take(a, m);
		break;
	}
	return true;
}
