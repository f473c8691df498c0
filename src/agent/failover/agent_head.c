/* SPDX-License-Identifier: BSD-3-Clause */
/* One head goes and another one comes, the node's side (docs/attach.md).
 *
 *   HEARD ── session over ──▶ HEADLESS ── grace over ──▶ all ranks end
 *     ▲                          │
 *     └── ATTACH, epoch newer ───┘       also from HEARD: the old session is closed first
 *
 * Whoever wants to be the head connects to a socket of this node, on its machine: the kernel says
 * whose process that is. Only a newer epoch is heard, and never again an older one. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/base.h"
#include "base/cpus.h"
#include "agent/agent_private.h"
#include "report/report.h"
#include "wire/attach/head_record.h"
#include "wire/attach/attach.h"
#include "wire/session/peer.h"

#define FLUSH_SECONDS 0.2
#define LOOK_SECONDS  1.0

/* Somebody who has connected and is not the head. */
struct agent_caller {
	struct session session;
	struct agent *agent;
	bool over;
	struct agent_caller *next;
};

/* ---- without a head ---- */

void agent_write_down(const struct setup *s, const char *why)
{
	struct record r;
	struct json_out j;

	record_init(&r);
	if (s->folder[0])
		record_open(&r, s->folder);
	record_begin(&j, "node ended");
	json_string(&j, "node", s->name);
	json_string(&j, "why", why);
	record_end(&r, &j);
	record_fini(&r);
}

static void end_alone(struct agent *a, const char *why)
{
	log_warn("%s", why);
	agent_write_down(&a->setup, why);
	a->end.status = 1;
	agent_leave(a);
}

/* What the newest head has written down: this node is none of the job's any more, or there is no
 * job. A folder that can't be read says nothing. */
static bool given_up_by_others(const struct agent *a)
{
	uint32_t newest = a->setup.folder[0] ? head_record_newest(a->setup.folder) : 0;
	struct json_value *doc = NULL;
	bool lost;

	if (newest == 0)
		return a->setup.folder[0] && access(a->setup.folder, R_OK | X_OK) == 0;
	if (head_record_read(a->setup.folder, newest, &doc, NULL) != HALE_OK)
		return false;
	lost = head_record_node_lost(doc, a->setup.node);
	json_free(doc);
	return lost;
}

static void look(void *arg)
{
	struct agent *a = arg;

	if (!a->heads.gone && !a->lease.frozen)
		return;
	if (given_up_by_others(a))
		end_alone(a, "the job goes on without this node, or is over: its ranks are ended");
	else
		loop_timer_set(&a->loop, &a->heads.look, LOOK_SECONDS, look, a);
}

static void given_up(void *arg)
{
	struct agent *a = arg;
	char why[160];

	snprintf(why, sizeof(why), "no head has come for %.0f s: the ranks of this node are ended",
		 (double)a->setup.grace_ns * 1e-9);
	end_alone(a, why);
}

static void drop_session(struct agent *a)
{
	agent_drop_later(a, HOLD_LINK_IN, a->heads.sessions);
	agent_drop_later(a, HOLD_LINK_OUT, a->heads.sessions);
}

bool agent_heads_wait(struct agent *a)
{
	if (a->setup.grace_ns == 0 || !a->ready || !a->ranks || supervisor_over(&a->supervisor))
		return false;
	if (!durable_session_is_open(&a->link) && !a->heads.gone) {
		a->heads.gone = true;
		drop_session(a);
		/* whose requests they were is gone; ranks that wait for others must not do so for
		 * ever */
		agent_ckpt_orphan(a);
		agent_ckpt_refuse(a);
	}
	if (!a->heads.alone.armed) {
		double left = (double)a->setup.grace_ns * 1e-9;

		a->heads.alone_until = clock_seconds() + left;
		loop_timer_set(&a->loop, &a->heads.alone, left, given_up, a);
	}
	if (!a->heads.look.armed)
		loop_timer_set(&a->loop, &a->heads.look, LOOK_SECONDS, look, a);
	return true;
}

/* ---- a new one ---- */

static void describe_rank(const struct agent *a, uint32_t rank, struct attach_rank *t)
{
	const struct agent_rank *r = &a->ranks[rank];

	t->flags = (agent_has(a, rank) || agent_has_left(a, rank) ? ATTACH_HERE : 0) |
		   (r->spawned ? ATTACH_SPAWNED : 0) | (r->stopped ? ATTACH_STOPPED : 0) |
		   (r->ended ? ATTACH_ENDED : 0) | (r->met ? ATTACH_MET : 0) |
		   (r->mpi ? ATTACH_MPI : 0) | (r->initialized ? ATTACH_INITIALIZED : 0) |
		   (r->finalized ? ATTACH_FINALIZED : 0) | (r->aborted ? ATTACH_ABORTED : 0);
	t->pid = r->pid;
	t->group = r->group;
	t->member = r->member;
	t->status = r->status;
	t->abort_code = r->abort_code;
	if (a->move.id)
		memcpy(t->position, a->move.relays[rank].position, sizeof(t->position));
	/* a copy has printed nothing yet */
	for (int i = 0; i < 2; i++)
		t->first[i] = agent_moves_in(a, rank) ? t->position[i + 1] : r->kept[i].first;
}

/* Where rank 0's stdin is counted; NULL: it is not here. */
static struct mailbox *fed(const struct agent *a)
{
	if (agent_has_left(a, 0))
		return segment_mailbox(a->move.old.segment, 0);
	return agent_has(a, 0) && a->view.segment ? agent_mailbox(a, 0) : NULL;
}

static void describe_node(struct agent *a, struct attach_node *n)
{
	struct mailbox *box = fed(a);

	n->generation = a->view.generation;
	n->epoch = a->heads.epoch;
	n->last_id = a->last_id;
	n->view = a->view.segment ? atomic_load(&a->view.segment->view) : 0;
	n->move = a->move.id;
	n->move_went = a->move.id && a->move.went;
	n->move_stop = a->move.stop_id;
	n->cores = cpus_allowed();
	n->paused = a->lease.paused;
	n->pid = getppid(); /* the supervisor, which stands for the node */
	gethostname(n->host, sizeof(n->host) - 1);
	if (!box)
		return;
	n->input_open = a->streams.stdin_sink.pipe.fd >= 0;
	n->input_ended = a->streams.stdin_sink.at_end;
	n->input_waiting = (uint32_t)(a->streams.stdin_sink.end - a->streams.stdin_sink.begin);
	n->input = atomic_load(&box->stream_taken[0]) + n->input_waiting;
}

static void tell_all(struct agent *a)
{
	size_t len = sizeof(struct attach_node) + a->setup.nranks * sizeof(struct attach_rank);
	struct attach_node *n = calloc(1, len);

	if (!n) {
		log_warn("out of memory for what the new head wants to know");
		durable_session_close(&a->link);
		return;
	}
	describe_node(a, n);
	for (uint32_t r = 0; r < a->setup.nranks; r++)
		describe_rank(a, r, (struct attach_rank *)(n + 1) + r);
	agent_send(a, &(struct message){.type = MSG_ATTACHED, .bytes = n, .len = len});
	free(n);
	agent_found_send(a);
	agent_kept_send(a);
	for (uint32_t r = 0; r < a->setup.nranks; r++) {
		if (agent_has(a, r) && a->ranks[r].met)
			agent_tell_address(a, r);
		/* behind the last of what it has printed */
		if ((agent_has_left(a, r) || agent_moves_out(a, r) ||
		     (a->setup.degree > 1 && agent_has(a, r))) &&
		    a->ranks[r].ended)
			agent_send(a, &(struct message){.type = MSG_ENDED,
							.rank = r,
							.value = a->ranks[r].status});
	}
}

/* fd becomes the session. The supervisor holds it beside the old one until it is written down which
 * of them counts: should this agent die before, its successor lets go of the new one, and the head
 * at its other end knocks again (docs/models/knock.pml). */
static void change_heads(struct agent *a, int fd, uint32_t epoch)
{
	int out;

	if (durable_session_is_open(&a->link)) {
		if (epoch != a->heads.epoch) {
			agent_send(
			    a, &(struct message){.type = MSG_SUPERSEDED, .id = epoch, .text = ""});
			agent_written(a);
			durable_session_flush(&a->link, FLUSH_SECONDS);
		}
		durable_session_close(&a->link);
		drop_session(a);
	}
	a->heads.epoch = epoch;
	a->heads.sessions++;
	a->heads.gone = false;
	if (!a->lease.frozen) {
		loop_timer_clear(&a->loop, &a->heads.alone);
		a->heads.alone_until = 0;
	}
	agent_ckpt_orphan(a);
	agent_ckpt_refuse(a);
	out = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (out < 0 || !durable_session_open(&a->link, &a->loop, a->supervisor.book, fd, out)) {
		if (out < 0)
			close(fd);
		durable_session_close(&a->link);
		agent_wait_for_head(a);
		return;
	}
	supervisor_hold(&a->supervisor, HOLD_LINK_IN, a->heads.sessions, fd);
	supervisor_hold(&a->supervisor, HOLD_LINK_OUT, a->heads.sessions, out);
	log_info("a new head has come, the job's number %u", epoch);
	/* the ask comes first: it is granted as soon as all have answered */
	agent_lease_renew(a);
	agent_copies_tell(a);
	tell_all(a);
	agent_events_renew(a);
}

/* ---- who knocks ---- */

static void forget_callers(void *arg)
{
	struct agent *a = arg;

	for (struct agent_caller **p = &a->heads.callers, *c; (c = *p);) {
		if (!c->over) {
			p = &c->next;
			continue;
		}
		*p = c->next;
		session_close(&c->session);
		free(c);
	}
}

/* Not at once: its session is at work. */
static void forget(struct agent_caller *c)
{
	c->over = true;
	loop_timer_set(&c->agent->loop, &c->agent->heads.forget, 0, forget_callers, c->agent);
}

static void caller_over(void *arg, const char *why)
{
	forget(arg);
}

static void caller_says(void *arg, const struct message *m)
{
	struct agent_caller *c = arg;
	struct agent *a = c->agent;
	int fd;

	forget(c);
	if (m->type != MSG_ATTACH)
		return;
	if (m->id < a->heads.epoch) {
		session_send(&c->session, &(struct message){.type = MSG_SUPERSEDED,
							    .id = a->heads.epoch,
							    .text = "it hears a newer head"});
		session_flush(&c->session, FLUSH_SECONDS);
		session_close(&c->session);
		return;
	}
	fd = dup(c->session.in_fd);
	session_close(&c->session);
	if (fd >= 0)
		change_heads(a, fd, m->id);
}

static void knock(void *arg, uint32_t events)
{
	struct agent *a = arg;
	struct agent_caller *c;
	int fd = accept4(a->heads.listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	c = calloc(1, sizeof(*c));
	if (!c || !peer_is_own(fd, NULL)) {
		free(c);
		close(fd);
		return;
	}
	c->agent = a;
	c->session.message = caller_says;
	c->session.over = caller_over;
	c->session.arg = c;
	if (!session_open(&c->session, &a->loop, fd, fd)) {
		close(fd);
		free(c);
		return;
	}
	c->next = a->heads.callers;
	a->heads.callers = c;
	session_greet(&c->session);
}

static int heads_socket(const struct sockaddr_un *sa, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && (bind(fd, (const struct sockaddr *)sa, len) != 0 || listen(fd, 16) != 0)) {
		int why = errno;

		close(fd);
		errno = why;
		fd = -1;
	}
	return fd;
}

hale_status_t agent_heads_listen(struct agent *a, struct error *err)
{
	struct sockaddr_un sa;
	size_t len;

	if (a->setup.grace_ns == 0)
		return HALE_OK;
	len = attach_address(a->setup.tag, a->setup.node, &sa);
	if (a->heads.listener < 0) /* otherwise one that has died has done this already */
		a->heads.listener = heads_socket(&sa, (socklen_t)len);
	if (a->heads.listener < 0 ||
	    !loop_add(&a->loop, &a->heads.listening, a->heads.listener, EPOLLIN, knock, a))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot listen for another head");
	supervisor_hold(&a->supervisor, HOLD_HEADS, 0, a->heads.listener);
	return HALE_OK;
}

/* Who was just knocking has to do it again. */
void agent_heads_again(struct agent *a, const struct book_state *s)
{
	double left = s->alone_until - clock_seconds();

	a->heads.listener = supervisor_claim(&a->supervisor, HOLD_HEADS, 0, NULL);
	if (a->heads.listener >= 0)
		loop_add(&a->loop, &a->heads.listening, a->heads.listener, EPOLLIN, knock, a);
	a->heads.alone_until = s->alone_until;
	if (a->heads.alone_until > 0)
		loop_timer_set(&a->loop, &a->heads.alone, left > 0 ? left : 0, given_up, a);
	if (a->heads.gone || a->lease.frozen)
		loop_timer_set(&a->loop, &a->heads.look, LOOK_SECONDS, look, a);
}

void agent_heads_close(struct agent *a)
{
	for (struct agent_caller *c = a->heads.callers; c; c = c->next)
		c->over = true;
	forget_callers(a);
	loop_timer_clear(&a->loop, &a->heads.forget);
	loop_timer_clear(&a->loop, &a->heads.alone);
	loop_timer_clear(&a->loop, &a->heads.look);
	loop_remove(&a->loop, &a->heads.listening);
	if (a->heads.listener >= 0)
		close(a->heads.listener);
	a->heads.listener = -1;
}
