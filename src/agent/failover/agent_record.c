/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent writes down after each turn of its loop, and how it is read back (node_record.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "agent/agent_private.h"

/* ---- what the supervisor need not hold any more ---- */

static void drop_all(struct agent *a)
{
	for (size_t i = 0; i < a->drops.count; i++)
		supervisor_drop(&a->supervisor, a->drops.list[i].kind, a->drops.list[i].key);
	a->drops.count = 0;
}

/* ---- writing ---- */

static uint32_t flags_of(const struct agent *a, const struct agent_rank *r)
{
	const struct agent_relay *l = a->move.relays ? &a->move.relays[r->rank] : NULL;

	return (r->mpi ? BOOK_MPI : 0) | (r->initialized ? BOOK_INITIALIZED : 0) |
	       (r->finalized ? BOOK_FINALIZED : 0) | (r->met ? BOOK_MET : 0) |
	       (r->moved ? BOOK_MOVED : 0) | (r->halted ? BOOK_HALTED : 0) |
	       (r->resumed ? BOOK_RESUMED : 0) | (r->written ? BOOK_WRITTEN : 0) |
	       (r->spawned ? BOOK_SPAWNED : 0) | (r->ended ? BOOK_ENDED : 0) |
	       (r->late ? BOOK_LATE : 0) | (r->aborted ? BOOK_ABORTED : 0) |
	       (r->out[0].fd >= 0 ? BOOK_OUT : 0) | (r->out[1].fd >= 0 ? BOOK_ERR : 0) |
	       (l && l->made ? BOOK_MADE : 0) | (r->stopped ? BOOK_STOPPED : 0);
}

static void write_rank(const struct agent *a, const struct agent_rank *r, struct book_rank *b)
{
	b->pid = r->pid;
	b->group = r->group;
	b->member = r->member;
	b->status = r->status;
	b->abort_code = r->abort_code;
	b->flags = flags_of(a, r);
	b->conn = r->conn ? r->conn->number : 0;
	b->kept[0] = r->kept[0];
	b->kept[1] = r->kept[1];
	if (a->move.relays)
		memcpy(b->position, a->move.relays[r->rank].position, sizeof(b->position));
}

static void write_move(const struct agent *a, struct book_state *s)
{
	const struct agent_move *v = &a->move;

	s->move = v->id;
	s->coming = v->id ? v->coming.slot : -1;
	s->old = v->id ? v->old.slot : -1;
	s->stop_id = v->stop_id; /* ranks may still say that they go on */
	if (v->id == 0)
		return;
	s->went = v->went;
	memcpy(s->move_folder, v->folder, sizeof(s->move_folder));
}

static void write_input(const struct agent *a, struct book_state *s)
{
	const struct stdin_sink *i = &a->streams.stdin_sink;

	s->input_open = i->pipe.fd >= 0;
	s->input_ended = i->at_end;
	s->input_len = (uint32_t)(i->end - i->begin);
	memcpy(s->input, i->bytes + i->begin, s->input_len);
}

static void write_state(const struct agent *a, struct book_state *s)
{
	s->turns = a->done.turns;
	s->frames = a->done.frames;
	s->packets = a->done.packets;
	s->pieces = a->done.pieces;
	s->feeds = a->done.feeds;
	s->in_begin = a->link.begin;
	s->out_tail = a->link.tail;
	s->ready = a->ready && a->ranks;
	s->exit_status = a->end.status;
	s->heard = durable_session_is_open(&a->link);
	s->sessions = a->heads.sessions;
	s->waiting = a->end.waiting;
	s->clear_id = a->end.clear_id;
	s->epoch = a->heads.epoch;
	s->last_id = a->last_id;
	s->headless = a->heads.gone;
	s->frozen = a->lease.frozen;
	s->paused = a->lease.paused;
	s->resuming = a->lease.resuming;
	s->resume_from = a->lease.resume_from;
	s->alone_until = a->heads.alone_until;
	s->lease = a->lease.held;
	s->view = a->view.slot;
	write_move(a, s);
	s->ckpt = a->ckpt.id;
	s->ckpt_local = a->ckpt.local;
	if (a->ckpt.id)
		memcpy(s->ckpt_folder, a->ckpt.folder, sizeof(s->ckpt_folder));
	for (int i = 0; i < 2; i++)
		s->window[i] = a->streams.window[i].out;
	write_input(a, s);
	for (uint32_t r = 0; a->ranks && r < a->setup.nranks; r++)
		write_rank(a, &a->ranks[r], &s->rank[r]);
}

void agent_record_write(void *agent)
{
	struct agent *a = agent;
	struct book *b = a->supervisor.book;
	uint32_t other = 1 - atomic_load(&b->current);

	a->done.turns++;
	write_state(a, &b->half[other]);
	atomic_store(&b->current, other);
	drop_all(a);
	durable_session_push(&a->link);
}

/* ---- reading ---- */

static void read_rank(struct agent_rank *r, const struct book_rank *b)
{
	r->pid = b->pid;
	r->group = b->group;
	r->member = b->member;
	r->status = b->status;
	r->abort_code = b->abort_code;
	r->kept[0] = b->kept[0];
	r->kept[1] = b->kept[1];
	r->mpi = (b->flags & BOOK_MPI) != 0;
	r->initialized = (b->flags & BOOK_INITIALIZED) != 0;
	r->finalized = (b->flags & BOOK_FINALIZED) != 0;
	r->met = (b->flags & BOOK_MET) != 0;
	r->moved = (b->flags & BOOK_MOVED) != 0;
	r->halted = (b->flags & BOOK_HALTED) != 0;
	r->resumed = (b->flags & BOOK_RESUMED) != 0;
	r->written = (b->flags & BOOK_WRITTEN) != 0;
	r->spawned = (b->flags & BOOK_SPAWNED) != 0;
	r->ended = (b->flags & BOOK_ENDED) != 0;
	r->late = (b->flags & BOOK_LATE) != 0;
	r->aborted = (b->flags & BOOK_ABORTED) != 0;
	r->stopped = (b->flags & BOOK_STOPPED) != 0;
}

void agent_read_counts(struct agent *a, const struct book_state *s)
{
	a->done.turns = s->turns;
	a->done.frames = s->frames;
	a->done.packets = s->packets;
	a->done.pieces = s->pieces;
	a->done.feeds = s->feeds;
}

void agent_read_back(struct agent *a, const struct book_state *s)
{
	agent_read_counts(a, s);
	a->end.status = s->exit_status;
	a->end.waiting = (enum book_waiting)s->waiting;
	a->end.clear_id = s->clear_id;
	a->heads.epoch = s->epoch;
	a->heads.sessions = s->sessions;
	a->last_id = s->last_id;
	a->move.stop_id = s->stop_id;
	a->heads.gone = s->headless != 0;
	a->lease.frozen = s->frozen != 0;
	a->lease.paused = s->paused != 0;
	a->lease.resuming = s->resuming != 0;
	a->lease.resume_from = s->resume_from;
	a->lease.held = s->lease;
	a->ckpt.id = s->ckpt;
	a->ckpt.local = s->ckpt_local != 0;
	memcpy(a->ckpt.folder, s->ckpt_folder, sizeof(a->ckpt.folder));
	for (int i = 0; i < 2; i++)
		a->streams.window[i].out = s->window[i];
	a->streams.stdin_sink.at_end = s->input_ended != 0;
	a->streams.stdin_sink.begin = 0;
	a->streams.stdin_sink.end = s->input_len;
	memcpy(a->streams.stdin_sink.bytes, s->input, s->input_len);
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		read_rank(&a->ranks[r], &s->rank[r]);
}
