/* SPDX-License-Identifier: BSD-3-Clause */
/* The stream between a rank that moves and its copy: the connection between their hosts that
 * agent_direct.c has made, or if there is none to be had, on its way through agents and head.
 *
 *   rank ── connection ── its agent ── head ── the copy's agent ── connection ── copy
 *
 * A replica that comes back beside its source has both ends at one agent, in two relays: what one
 * brings goes to the other, without the head.
 *
 * At most RELAY_WINDOW bytes a way are between the two connections: more is not read before the
 * other end has said TAKEN. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/agent_private.h"
#include "wire/session/peer.h"

enum { RELAY_WINDOW = 4 << 20, RELAY_READ = 256 << 10 };

static struct agent_relay *relay_of(const struct agent *a, uint32_t rank, bool in)
{
	return &a->move.relays[in && agent_copies_here(a, rank) ? a->setup.nranks + rank : rank];
}

/* The other end, if it is here, too. */
static struct agent_relay *relay_other(const struct agent_relay *l)
{
	const struct agent *a = l->agent;

	if (!agent_copies_here(a, l->rank))
		return NULL;
	return relay_of(a, l->rank, l == relay_of(a, l->rank, false));
}

static void relay_close(struct agent_relay *l)
{
	int fd = l->source.fd;

	loop_remove(&l->agent->loop, &l->source);
	if (fd >= 0)
		close(fd);
	free(l->waiting);
	l->waiting = NULL;
	l->begin = l->end = l->cap = 0;
}

static bool say_byte(int to, char byte, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *h;

	if (fd >= 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	}
	return sendmsg(to, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

/* The process here has it from now on. Without one, the stream ends before it has begun. */
static void hand_over(struct agent_relay *l)
{
	if (l->given >= 0)
		say_byte(l->source.fd, MIGRATE_GIVEN, l->given);
	relay_close(l);
	if (l->given >= 0)
		close(l->given);
	l->given = -1;
}

static void relay_interest(struct agent_relay *l)
{
	uint32_t events = 0;

	if (l->source.fd < 0)
		return;
	if (l->out < RELAY_WINDOW && l->way == WAY_RELAY)
		events |= EPOLLIN;
	if (l->begin < l->end)
		events |= EPOLLOUT;
	loop_change(&l->agent->loop, &l->source, events);
}

static void relay_put(struct agent_relay *l, const void *bytes, size_t len);

static void relay_pass(struct agent_relay *l, const void *bytes, size_t len)
{
	struct agent_relay *other = relay_other(l);

	l->out += len;
	if (other)
		relay_put(other, bytes, len);
	else
		agent_send(l->agent, &(struct message){.type = MSG_MOVE_DATA,
						       .rank = l->rank,
						       .id = l->agent->move.id,
						       .bytes = bytes,
						       .len = len});
}

static void relay_taken(struct agent_relay *l, uint64_t bytes)
{
	l->out -= bytes < l->out ? bytes : l->out;
	relay_interest(l);
}

static void relay_read(struct agent_relay *l)
{
	static unsigned char bytes[RELAY_READ];
	ssize_t n = recv(l->source.fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0) {
		relay_pass(l, bytes, (size_t)n);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		/* its end proves nothing: what does is the end of the process */
		relay_close(l);
	}
}

static void relay_write(struct agent_relay *l)
{
	struct agent_relay *other = relay_other(l);
	uint64_t taken = 0;

	while (l->source.fd >= 0 && l->begin < l->end) {
		ssize_t n = send(l->source.fd, l->waiting + l->begin, l->end - l->begin,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n > 0) {
			l->begin += (size_t)n;
			taken += (uint64_t)n;
		} else if (errno == EAGAIN) {
			break;
		} else if (errno != EINTR) {
			relay_close(l);
		}
	}
	if (taken && other)
		relay_taken(other, taken);
	/* with both ends here the head hears of it all the same, as a sign that it gets on */
	if (taken)
		agent_send(l->agent, &(struct message){.type = MSG_MOVE_TAKEN,
						       .rank = l->rank,
						       .id = l->agent->move.id,
						       .number = taken});
}

static void relay_ready(void *arg, uint32_t events)
{
	struct agent_relay *l = arg;

	if (events & EPOLLOUT)
		relay_write(l);
	/* with the window full only a hang-up gets us here */
	if (l->source.fd >= 0 && (events & ~(uint32_t)EPOLLOUT)) {
		if (l->out < RELAY_WINDOW)
			relay_read(l);
		else
			relay_close(l);
	}
	relay_interest(l);
}

/* The process has been connected for a while (in: a copy), and now it is known that it goes this
 * way. */
static void relay_begin(struct agent_relay *l, bool in)
{
	int fd = l->source.fd;

	if (in && !say_byte(fd, MIGRATE_RELAY, -1)) {
		relay_close(l);
		return;
	}
	if (!agent_seals(l->agent) || agent_copies_here(l->agent, l->rank))
		return;
	loop_remove(&l->agent->loop, &l->source);
	fd = agent_seal_process(l->agent, l->rank, fd);
	if (fd >= 0 && !loop_add(&l->agent->loop, &l->source, fd, 0, relay_ready, l))
		close(fd);
}

static void relay_put(struct agent_relay *l, const void *bytes, size_t len)
{
	if (l->way == WAY_DIRECT)
		return;
	if (l->way == WAY_UNKNOWN) { /* the source's agent has found no other way */
		l->way = WAY_RELAY;
		if (l->source.fd >= 0)
			relay_begin(l, true);
	}
	if (len == 0 || (l->connected && l->source.fd < 0))
		return;
	if (l->begin > 0 && l->cap - l->end < len) {
		memmove(l->waiting, l->waiting + l->begin, l->end - l->begin);
		l->end -= l->begin;
		l->begin = 0;
	}
	if (l->cap - l->end < len) {
		size_t cap = l->end + len > RELAY_WINDOW ? l->end + len : RELAY_WINDOW;
		unsigned char *more = realloc(l->waiting, cap);

		if (!more) { /* the rank waits until the head loses patience */
			relay_close(l);
			return;
		}
		l->waiting = more;
		l->cap = cap;
	}
	memcpy(l->waiting + l->end, bytes, len);
	l->end += len;
	relay_write(l);
	relay_interest(l);
}

static void relay_connect(struct agent_relay *l, bool in, int fd)
{
	if (!loop_add(&l->agent->loop, &l->source, fd, 0, relay_ready, l)) {
		close(fd);
		return;
	}
	l->connected = true;
	if (l->way == WAY_DIRECT) {
		hand_over(l);
		return;
	}
	if (l->way == WAY_RELAY)
		relay_begin(l, in);
	if (l->way == WAY_RELAY)
		relay_write(l);
	relay_interest(l);
}

void agent_relay_decided(struct agent *a, uint32_t rank, bool out, int fd)
{
	struct agent_relay *l = a->move.relays ? relay_of(a, rank, !out) : NULL;
	bool seals = agent_seals(a) && !agent_copies_here(a, rank);

	if (!l || l->way != WAY_UNKNOWN || (!out && fd < 0)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	l->way = fd >= 0 ? WAY_DIRECT : WAY_RELAY;
	l->given = fd;
	/* how it gets on, the source's agent keeps an eye on */
	if (fd >= 0 && (out || seals))
		l->watched = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0 && seals)
		l->given = agent_seal_wire(a, rank, fd);
	if (out)
		agent_move_first_round(a, rank, fd >= 0);
	else if (l->source.fd >= 0)
		hand_over(l);
}

/* Who it is the kernel says: the process of a rank that moves, or a copy that we have started. */
static void accept_stream(void *arg, uint32_t events)
{
	struct agent *a = arg;
	pid_t peer;
	int fd = accept4(a->move.listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (peer_is_own(fd, &peer)) {
		for (uint32_t r = 0; r < a->setup.nranks; r++) {
			bool in = agent_moves_in(a, r) && a->ranks[r].pid == peer;
			bool out = agent_moves_out(a, r) &&
				   a->ranks[agent_move_source(a, r)].member == peer;
			struct agent_relay *l = relay_of(a, r, in);

			if ((in || out) && !l->connected) {
				relay_connect(l, in, fd);
				return;
			}
		}
	}
	close(fd);
}

hale_status_t agent_relays_begin(struct agent *a, struct error *err)
{
	struct agent_move *v = &a->move;

	v->listener = agent_listen_at(a, "move", SOCK_STREAM, v->name);
	if (v->listener < 0 ||
	    !loop_add(&a->loop, &v->listening, v->listener, EPOLLIN, accept_stream, a))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot listen for ranks that move");
	agent_progress_start(a);
	return HALE_OK;
}

bool agent_relays_make(struct agent *a)
{
	uint32_t nranks = a->setup.nranks, count = 2 * nranks;
	struct agent_relay *l = calloc(count, sizeof(*l));

	for (uint32_t i = 0; l && i < count; i++)
		l[i] = (struct agent_relay){.agent = a,
					    .rank = i % nranks,
					    .source.fd = -1,
					    .file = -1,
					    .given = -1,
					    .watched = -1};
	a->move.relays = l;
	return l != NULL;
}

void agent_relays_end(struct agent *a)
{
	struct agent_move *v = &a->move;

	loop_remove(&a->loop, &v->listening);
	if (v->listener >= 0)
		close(v->listener);
	v->listener = -1;
	for (uint32_t r = 0; v->relays && r < 2 * a->setup.nranks; r++) {
		relay_close(&v->relays[r]);
		/* by now both processes have what they need of it, or it is all over */
		if (v->relays[r].sealer > 0)
			kill(v->relays[r].sealer, SIGKILL);
		if (v->relays[r].given >= 0)
			close(v->relays[r].given);
		if (v->relays[r].watched >= 0)
			close(v->relays[r].watched);
	}
	free(v->relays);
	v->relays = NULL;
}

void agent_relay_take(struct agent *a, const struct message *m)
{
	struct agent_relay *l = &a->move.relays[m->rank];

	if (m->type == MSG_MOVE_DATA) {
		relay_put(l, m->bytes, m->len);
	} else if (!agent_copies_here(a, m->rank)) {
		relay_taken(l, m->number);
	}
}
