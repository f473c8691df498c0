/* SPDX-License-Identifier: BSD-3-Clause */
/* A new agent takes the place of one that has died (docs/nodes.md, 'An agent is replaced'): what it
 * was is in the book, what it held the supervisor has. To the head it is the same one. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/agent_private.h"

#define BYE_SECONDS 1.0

/* ---- who lives where ---- */

/* now: the present one, whose segment may be this one's, too; NULL: this is it. */
static hale_status_t view_again(struct agent *a, int slot, const struct agent_view *now,
				struct agent_view *v, struct error *err)
{
	const struct book_view *b = slot >= 0 ? &a->supervisor.book->views[slot] : NULL;
	size_t bytes = segment_bytes(a->setup.nranks);

	*v = (struct agent_view){.segment_fd = -1, .slot = slot};
	if (!b)
		return HALE_OK;
	v->generation = b->generation;
	v->node_of = calloc(a->setup.nranks, sizeof(*v->node_of));
	if (!v->node_of)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	memcpy(v->node_of, b->node_of, a->setup.nranks * sizeof(*v->node_of));
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		v->here += v->node_of[r] == a->setup.node;
	if (now && now->generation == v->generation && now->segment_fd >= 0)
		v->segment_fd = fcntl(now->segment_fd, F_DUPFD_CLOEXEC, 0);
	else
		v->segment_fd =
		    supervisor_claim(&a->supervisor, HOLD_SEGMENT, v->generation, NULL);
	if (v->segment_fd < 0)
		return v->here == 0 ? HALE_OK
				    : error_set(err, HALE_ERR_STATE, "the ranks' segment is gone");
	v->segment =
	    mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, v->segment_fd, 0);
	if (v->segment != MAP_FAILED)
		return HALE_OK;
	v->segment = NULL;
	return error_sys(err, HALE_ERR_MEMORY, "cannot map the shared segment");
}

/* Its streams have ended with it, if they passed it; and the head, which hears that there is
 * another agent, gives the migration up if copies are none yet. From GO on nothing is needed of
 * them. */
static bool move_again(struct agent *a, const struct book_state *s)
{
	struct agent_move *v = &a->move;

	if (!agent_relays_make(a))
		return false;
	for (unsigned i = 0; i < AGENT_PLACES; i++)
		v->direct[i].fd = -1;
	snprintf(v->folder, sizeof(v->folder), "%s", s->move_folder);
	v->went = s->went != 0;
	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		struct agent_relay *l = &v->relays[r];

		l->made = (s->rank[r].flags & BOOK_MADE) != 0;
		memcpy(l->position, s->rank[r].position, sizeof(l->position));
	}
	v->id = s->move;
	return true;
}

static hale_status_t views_again(struct agent *a, const struct book_state *s, struct error *err)
{
	const struct book *b = a->supervisor.book;
	struct agent_view now;
	hale_status_t status = view_again(a, s->view, NULL, &now, err);

	if (status == HALE_OK)
		status = view_again(a, s->coming, &now, &a->move.coming, err);
	if (status == HALE_OK)
		status = view_again(a, s->old, &now, &a->move.old, err);
	if (status != HALE_OK) {
		agent_view_drop(a, &now);
		return status;
	}
	agent_view_swap(a, &now);
	a->machine.of = calloc(b->machines ? b->machines : 1, sizeof(*a->machine.of));
	if (!a->machine.of)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	memcpy(a->machine.of, b->machine_of, b->machines * sizeof(*a->machine.of));
	a->machine.nodes = b->machines;
	if (s->move && !move_again(a, s))
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	agent_pins(a);
	return HALE_OK;
}

/* ---- ranks ---- */

/* Of a copy that is the rank only at RELEASE nothing is read before; of one that moves in, its
 * mailbox is in the segment to come. */
static struct mailbox *mailbox_of(struct agent *a, uint32_t rank)
{
	if (agent_moves_in(a, rank))
		return a->move.coming.segment ? segment_mailbox(a->move.coming.segment, rank)
					      : NULL;
	if (a->move.id && a->move.went && !agent_has(a, rank))
		return a->move.old.segment ? segment_mailbox(a->move.old.segment, rank) : NULL;
	return a->view.segment ? agent_mailbox(a, rank) : NULL;
}

static void streams_again(struct agent *a, uint32_t rank, uint32_t flags)
{
	static struct mailbox nowhere;
	struct agent_rank *r = &a->ranks[rank];
	struct mailbox *m = mailbox_of(a, rank);

	for (int i = 0; i < 2; i++) {
		uint64_t key = 2ull * rank + (uint64_t)i;
		bool open = (flags & (i ? BOOK_ERR : BOOK_OUT)) != 0;
		int fd = open ? supervisor_claim(&a->supervisor, HOLD_OUT, key, NULL) : -1;

		if (fd < 0) {
			agent_drop_later(a, HOLD_OUT, key);
			continue;
		}
		stream_reopen(&r->out[i], fd, m ? m : &nowhere);
		if (a->move.went && agent_is_copy(a, rank))
			loop_remove(&a->loop, &r->out[i].source);
	}
}

static void input_again(struct agent *a, const struct book_state *s)
{
	struct mailbox *m = mailbox_of(a, 0);
	int fd = s->input_open && m ? supervisor_claim(&a->supervisor, HOLD_INPUT, 0, NULL) : -1;

	if (fd < 0)
		agent_drop_later(a, HOLD_INPUT, 0);
	else
		stdin_sink_reopen(&a->streams.stdin_sink, fd, m);
}

static void conn_again(struct agent *a, const struct supervisor_held *h, const struct book_state *s)
{
	struct supervisor_conn conn = {.number = h->key};
	struct agent_conn *c;

	conn.fd = supervisor_claim(&a->supervisor, HOLD_CONN, h->key, &conn.peer);
	c = agent_conn_add(a, &conn);
	for (uint32_t r = 0; c && r < a->setup.nranks; r++) {
		if (s->rank[r].conn != c->number)
			continue;
		c->rank = r;
		a->ranks[r].conn = c;
	}
}

static void ranks_again(struct agent *a, const struct book_state *s)
{
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		if (s->rank[r].flags & (BOOK_OUT | BOOK_ERR | BOOK_SPAWNED))
			streams_again(a, r, s->rank[r].flags);
	input_again(a, s);
	for (size_t i = 0; i < a->supervisor.count; i++)
		if (a->supervisor.held[i].kind == HOLD_CONN && a->supervisor.held[i].fd >= 0)
			conn_again(a, &a->supervisor.held[i], s);
}

/* ---- what was under way ---- */

/* What had been taken from somewhere, and not dealt with. At most one of them is there. */
static void take_up(struct agent *a)
{
	struct book *b = a->supervisor.book;
	struct book_piece *p = &b->piece;

	if (atomic_load(&p->number) > a->done.pieces && p->rank < a->setup.nranks &&
	    a->ranks[p->rank].out[p->which - 1].fd >= 0)
		stream_recover(&a->ranks[p->rank].out[p->which - 1]);
	if (atomic_load(&b->input.number) > a->done.feeds && a->streams.stdin_sink.pipe.fd >= 0)
		stdin_sink_recover(&a->streams.stdin_sink);
	agent_packet_again(a);
}

static void wait_again(struct agent *a)
{
	const double soon = 0;

	switch (a->end.waiting) {
	case BOOK_CLEARING:
		loop_timer_set(&a->loop, &a->end.clear, soon, agent_clear_again, a);
		break;
	case BOOK_CANCELLING:
		loop_timer_set(&a->loop, &a->end.clear, soon, agent_move_end_copies, a);
		break;
	case BOOK_LEAVING:
		loop_timer_set(&a->loop, &a->end.clear, soon, agent_leave_when_clear, a);
		break;
	case BOOK_NOTHING:
		break;
	}
}

static void tell(struct agent *a)
{
	char why[96];

	supervisor_how(a->supervisor.ended, why, sizeof(why));
	agent_send(a,
		   &(struct message){.type = MSG_RENEWED, .value = (int32_t)getpid(), .text = why});
}

static hale_status_t link_again(struct agent *a, const struct book_state *s, struct error *err)
{
	uint64_t key = s->sessions;
	int in = s->heard ? supervisor_claim(&a->supervisor, HOLD_LINK_IN, key, NULL) : -1;
	int out = s->heard ? supervisor_claim(&a->supervisor, HOLD_LINK_OUT, key, NULL) : -1;

	if (!s->heard) {
		a->link.tail = s->out_tail;
		a->link.begin = s->in_begin;
		return HALE_OK;
	}
	if (in >= 0 && out >= 0 &&
	    durable_session_reopen(&a->link, &a->loop, a->supervisor.book, in, out, s))
		return HALE_OK;
	return error_set(err, HALE_ERR_STATE, "the way to hale run is gone");
}

/* It did not know its job yet, or was just about to hear of it: what the head has said of that is
 * still to be taken. What it held for it is made again, but for names that are taken. */
static bool begin_anew(struct agent *a, const struct book_state *s, struct error *err)
{
	if (s->turns == 0)
		return agent_begin(a);
	agent_read_counts(a, s);
	if (link_again(a, s, err) != HALE_OK)
		return false;
	a->heads.listener = supervisor_claim(&a->supervisor, HOLD_HEADS, 0, NULL);
	supervisor_claimed(&a->supervisor);
	agent_ward_start(a);
	tell(a);
	agent_written(a);
	return true;
}

bool agent_adopt(struct agent *a, struct error *err)
{
	struct book *b = a->supervisor.book;
	const struct book_state *s = book_now(b);

	if (!s->ready)
		return begin_anew(a, s, err);
	if (!setup_read(b->setup, b->setup_len, &a->setup))
		return error_set(err, HALE_ERR_STATE, "the job's description is gone") == HALE_OK;
	memcpy(a->door.address, b->address, sizeof(a->door.address));
	memcpy(a->door.token, b->token, sizeof(a->door.token));
	if (agent_begin_again(a, err) != HALE_OK)
		return false;
	a->ready = true;
	agent_read_back(a, s);
	agent_kept_again(a);
	if (views_again(a, s, err) != HALE_OK || link_again(a, s, err) != HALE_OK)
		return false;
	a->door.listener = supervisor_claim(&a->supervisor, HOLD_RANKS, 0, NULL);
	ranks_again(a, s);
	agent_heads_again(a, s);
	agent_copies_again(a);
	supervisor_claimed(&a->supervisor);
	agent_ward_start(a);
	/* from here on turns are written down */
	tell(a);
	take_up(a);
	if (a->setup.flags & SETUP_EVENTS)
		agent_events_start(a);
	if (a->ckpt.id)
		agent_ckpt_again(a);
	wait_again(a);
	agent_lease_again(a);
	agent_hang_start(a);
	agent_reap_soon(a);
	agent_written(a);
	return true;
}

/* ---- nobody takes its place ---- */

static void unheard(void *arg, const char *why)
{
}

/* What the last agent had still to say goes out, and why it was the last one behind it. */
static bool say_bye(struct supervisor *g, const struct book_state *s, const char *why)
{
	struct durable_session t = {
	    .in_fd = -1, .out_fd = -1, .in.fd = -1, .out.fd = -1, .over = unheard};
	int in = supervisor_claim(g, HOLD_LINK_IN, s->sessions, NULL);
	int out = supervisor_claim(g, HOLD_LINK_OUT, s->sessions, NULL);
	struct loop loop;
	bool sent;

	if (in < 0 || out < 0 || !loop_init(&loop))
		return false;
	if (!durable_session_reopen(&t, &loop, g->book, in, out, s)) {
		loop_fini(&loop);
		return false;
	}
	durable_session_send(&t, &(struct message){.type = MSG_BYE, .text = why});
	g->book->half[atomic_load(&g->book->current)].out_tail = t.tail;
	sent = durable_session_flush(&t, BYE_SECONDS);
	if (sent)
		durable_session_linger(&t, BYE_SECONDS);
	/* it stays open until this process ends */
	loop_remove(&loop, &t.in);
	loop_remove(&loop, &t.out);
	loop_timer_clear(&loop, &t.later);
	loop_fini(&loop);
	return sent;
}

bool agent_bye(struct supervisor *g, const char *why)
{
	const struct book_state *s = book_now(g->book);
	struct setup setup;

	if (s->turns == 0)
		return false;
	if (s->heard)
		return say_bye(g, s, why);
	if (s->ready && setup_read(g->book->setup, g->book->setup_len, &setup)) {
		agent_write_down(&setup, why);
		setup_fini(&setup);
	}
	return false;
}
