/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's side of proto.h: its socket, who may connect, HELLO and WELCOME. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/base.h"
#include "base/packets.h"
#include "agent/agent_private.h"
#include "wire/session/peer.h"

static void conn_close(struct agent_conn *c)
{
	struct agent *a = c->agent;
	int fd = c->source.fd;

	loop_remove(&a->loop, &c->source);
	close(fd);
	agent_drop_later(a, HOLD_CONN, c->number);
	for (struct agent_conn **p = &a->door.conns; *p; p = &(*p)->next) {
		if (*p == c) {
			*p = c->next;
			break;
		}
	}
	if (a->ranks && c->rank >= 0 && a->ranks[c->rank].conn == c)
		a->ranks[c->rank].conn = NULL;
	free(c);
}

void agent_conns_close(struct agent *a)
{
	for (struct agent_conn *c = a->door.conns, *next; c; c = next) {
		next = c->next;
		conn_close(c);
	}
}

void agent_conn_drain(struct agent_rank *r)
{
	struct agent_conn *c = r->conn;

	while (c && r->conn == c && c->source.fd >= 0) {
		char peek;
		if (recv(c->source.fd, &peek, 1, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC) <= 0)
			break;
		c->source.ready(c->source.arg, EPOLLIN);
	}
}

void agent_conn_drop(struct agent *a, struct agent_rank *r)
{
	if (r->conn)
		conn_close(r->conn);
}

__attribute__((format(printf, 2, 3))) static void refuse(struct agent_conn *c, const char *fmt, ...)
{
	struct proto_plain p = {.type = PROTO_REFUSED};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p.text, sizeof(p.text), fmt, ap);
	va_end(ap);
	send(c->source.fd, &p, sizeof(p), MSG_DONTWAIT | MSG_NOSIGNAL);
	conn_close(c);
}

bool agent_conn_welcome(struct agent *a, struct agent_conn *c, uint32_t rank)
{
	const struct segment *s = a->view.segment;
	struct proto_welcome w = {.type = PROTO_WELCOME,
				  .version = PROTO_VERSION,
				  .rank = rank,
				  .nranks = s->nranks,
				  .generation = s->generation,
				  .flags = a->move.went && agent_is_copy(a, rank) ? WELCOME_GO : 0,
				  .segment_bytes = s->bytes};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = &w, .iov_len = sizeof(w)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &a->view.segment_fd, sizeof(int));
	return sendmsg(c->source.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(w);
}

/* A program without MPI that executes another one (a script that ends with exec) is that one now;
 * they share nothing in the segment. */
static bool has_execed(const struct agent_conn *c, const struct agent_rank *r,
		       const struct proto_hello *h)
{
	return !h->mpi && !r->mpi && c->peer == r->member;
}

/* A process in reserve has become the program that MPI_Comm_spawn asked for. What it said before,
 * PROTO_BECOMES, may lie unread in its old connection. */
static bool has_become(const struct agent *a, uint32_t rank)
{
	return atomic_load(&segment_spawn_room(a->view.segment, rank)->state) == SPAWN_ORDERED;
}

/* The agent before this one was killed while it started the rank: the head's order is at the front
 * of what this one has yet to read. */
static bool is_told_soon(const struct agent *a, uint32_t rank)
{
	const struct book_child *c = &a->supervisor.book->child[rank];

	return atomic_load(&c->pid) > 0 && !atomic_load(&c->ended);
}

static void take_hello(struct agent_conn *c, const struct proto_hello *h)
{
	struct agent *a = c->agent;
	struct agent_rank *r;

	if (h->version != PROTO_VERSION) {
		refuse(c, "it is of another version of hale than the agent");
		return;
	}
	if (strncmp(h->token, a->door.token, sizeof(h->token)) != 0 ||
	    !(agent_has(a, h->rank) || agent_moves_in(a, h->rank))) {
		refuse(c, "it does not know the token of this job");
		return;
	}
	if (agent_moves_in(a, h->rank)) {
		agent_move_hello(a, c, h);
		return;
	}
	r = &a->ranks[h->rank];
	if (r->pid == 0 && is_told_soon(a, h->rank)) {
		conn_close(c); /* it asks again */
		return;
	}
	if (r->pid == 0 || (r->met && !has_execed(c, r, h) && !has_become(a, h->rank))) {
		refuse(c,
		       "rank %u has already run an MPI program in this job; start each MPI "
		       "program by a `hale run` of its own",
		       h->rank);
		return;
	}
	agent_conn_drain(r); /* of the program before this one; its image is written, perhaps */
	agent_conn_drop(a, r);
	/* A checkpoint may be asked for at once, and the rank writes its mailbox only after the
	 * WELCOME: until then this is known of its descriptors. */
	agent_mailbox(a, h->rank)->own_fd[0] = h->own_fd > 0 ? h->own_fd : -1;
	if (!agent_conn_welcome(a, c, h->rank)) {
		conn_close(c);
		return;
	}
	c->rank = h->rank;
	r->conn = c;
	r->member = c->peer;
	r->met = true;
	r->mpi = h->mpi != 0;
	/* checkpoints are only taken between Init and Finalize */
	r->initialized = h->restored != 0;
	agent_weights_place(a);
	agent_send(a, &(struct message){.type = MSG_HELLO,
					.rank = h->rank,
					.value = c->peer,
					.flags = (h->mpi ? HELLO_MPI : 0) |
						 (h->restored ? HELLO_RESTORED : 0)});
}

/* Where a rank can be reached: other nodes want to know. Half written: the rank tells again when it
 * is whole. */
void agent_tell_address(struct agent *a, uint32_t rank)
{
	unsigned char bytes[SEGMENT_ADDRESS_MAX];
	uint32_t length;

	/* the last rank may have moved away meanwhile */
	if (a->view.segment && segment_address_get(a->view.segment, rank, bytes, &length) != 0)
		agent_send(a, &(struct message){.type = MSG_ADDRESS,
						.id = a->view.generation,
						.rank = rank,
						.bytes = bytes,
						.len = length});
}

/* A script around it would go on as if its program had ended. */
static void take_moved(struct agent *a, uint32_t rank)
{
	struct agent_rank *r = &a->ranks[rank];

	if (r->member == r->pid)
		return;
	r->moved = true;
	agent_signal(a, rank, SIGKILL);
}

/* A child of a rank runs on when all ranks are there: they have put back what it may write to. */
static void take_back(struct agent_conn *c, struct proto_plain *p)
{
	const struct segment *s = c->agent->view.segment;

	if (strncmp(p->text, c->agent->door.token, sizeof(c->agent->door.token)) != 0) {
		conn_close(c);
		return;
	}
	c->awaits_all = true;
	if (s && atomic_load(&s->all_back))
		agent_conns_back(c->agent);
}

void agent_conns_back(struct agent *a)
{
	const struct proto_plain p = {.type = PROTO_BACK};

	for (struct agent_conn *c = a->door.conns; c; c = c->next)
		if (c->awaits_all) {
			send(c->source.fd, &p, sizeof(p), MSG_DONTWAIT | MSG_NOSIGNAL);
			c->awaits_all = false;
		}
}

static void take_packet(struct agent_conn *c, union proto_packet *p, size_t len)
{
	struct agent *a = c->agent;

	if (c->rank < 0) {
		if (p->type == PROTO_HELLO && len == sizeof(p->hello))
			take_hello(c, &p->hello);
		else if (p->type == PROTO_BACK && len == sizeof(p->plain))
			take_back(c, &p->plain);
		else
			conn_close(c);
		return;
	}
	if (len == 0 || len != proto_size(p->type)) {
		log_warn("rank %d sent something that is no packet; its connection is closed",
			 (int)c->rank);
		conn_close(c);
		return;
	}
	if (len == sizeof(p->plain))
		p->plain.text[PROTO_TEXT - 1] = '\0';
	else if (len == sizeof(p->ckpt))
		p->ckpt.text[PROTO_TEXT - 1] = '\0';
	if (p->type == PROTO_INITIALIZED)
		a->ranks[c->rank].initialized = true;
	if (p->type == PROTO_FINALIZED)
		a->ranks[c->rank].finalized = true;
	if (p->type == PROTO_BECOMES)
		a->ranks[c->rank].met = a->ranks[c->rank].mpi = a->ranks[c->rank].initialized =
		    false;
	if (p->type == PROTO_CKPT_RESUMED && p->ckpt.id == a->move.stop_id)
		a->ranks[c->rank].stopped = false;
	if (p->type == PROTO_MOVED) {
		take_moved(a, (uint32_t)c->rank);
		return;
	}
	if (p->type == PROTO_ADDRESS) {
		agent_tell_address(a, (uint32_t)c->rank);
		return;
	}
	if (p->type == PROTO_ABORT) {
		a->ranks[c->rank].aborted = true;
		a->ranks[c->rank].abort_code = p->plain.value;
	}
	if (p->type == PROTO_SDC)
		agent_found_keep(a, (uint32_t)c->rank, &p->sdc);
	if (p->type == PROTO_SAID) /* what it has printed before comes before */
		stream_take(&a->ranks[c->rank].out[1]);
	if (p->type == PROTO_CKPT_ASK && a->heads.gone)
		agent_ckpt_refuse(a);
	if (len == sizeof(p->ckpt))
		agent_ckpt_packet(a, (uint32_t)c->rank, &p->ckpt);
	agent_send(a, &(struct message){
			  .type = MSG_PACKET, .rank = (uint32_t)c->rank, .bytes = p, .len = len});
}

/* The end of a connection means nothing by itself, unless the agent can't see the process that
 * held it end: when it is a child of the launched one. */
static void take_end(struct agent_conn *c)
{
	struct agent *a = c->agent;
	struct agent_rank *r = c->rank >= 0 ? &a->ranks[c->rank] : NULL;
	bool lost =
	    r && r->pid > 0 && !r->moved && r->member != r->pid && !r->finalized && r->initialized;

	conn_close(c);
	if (lost)
		agent_send(a, &(struct message){.type = MSG_STRAY, .rank = r->rank});
}

/* The packet in the book is dealt with, and that is written down before the next one is received.
 * c may be gone afterwards. */
static void packet_done(struct agent *a)
{
	a->done.packets = atomic_load(&a->supervisor.book->packet.number);
	agent_written(a);
}

/* Received into the book: who dies after that has not lost it. All packets begin with a type. */
static void conn_ready(void *arg, uint32_t events)
{
	struct agent_conn *c = arg;
	struct agent *a = c->agent;
	struct book_packet *k = &a->supervisor.book->packet;
	union proto_packet p;
	ssize_t n;

	atomic_store(&k->number, 0);
	k->conn = c->number;
	k->packet.type = 0;
	atomic_store(&k->number, a->done.packets + 1);
	n = packet_recv(c->source.fd, &k->packet, sizeof(k->packet), MSG_DONTWAIT | MSG_TRUNC);
	if (n >= (ssize_t)sizeof(p.type)) {
		p = k->packet;
		take_packet(c, &p, (size_t)n);
		packet_done(a);
		return;
	}
	atomic_store(&k->number, 0);
	if (n >= 0 || (errno != EAGAIN))
		take_end(c);
}

void agent_packet_again(struct agent *a)
{
	struct book_packet *k = &a->supervisor.book->packet;
	union proto_packet p = k->packet;
	struct agent_conn *c = a->door.conns;

	if (atomic_load(&k->number) <= a->done.packets || p.type == 0)
		return;
	while (c && c->number != k->conn)
		c = c->next;
	if (c)
		take_packet(c, &p,
			    p.type == PROTO_HELLO  ? sizeof(p.hello)
			    : p.type == PROTO_BACK ? sizeof(p.plain)
						   : proto_size(p.type));
	packet_done(a);
}

struct agent_conn *agent_conn_add(struct agent *a, const struct supervisor_conn *conn)
{
	struct agent_conn *c = calloc(1, sizeof(*c));

	if (!c || !loop_add(&a->loop, &c->source, conn->fd, EPOLLIN, conn_ready, c)) {
		free(c);
		close(conn->fd);
		return NULL;
	}
	c->agent = a;
	c->number = conn->number;
	c->peer = conn->peer;
	c->rank = -1;
	c->next = a->door.conns;
	a->door.conns = c;
	return c;
}

/* ---- the supervisor ---- */

static void accepted(void *arg, const struct supervisor_conn *conn)
{
	agent_conn_add(arg, conn);
}

/* Whoever has killed it has killed the ranks: their parent is gone. What they have started goes
 * now. */
static void orphaned(struct agent *a)
{
	if (a->orphaned)
		return;
	a->orphaned = true;
	loop_remove(&a->loop, &a->ward_source);
	agent_fence(a, "the supervisor of its ranks was ended");
}

static void ward_ready(void *arg, uint32_t events)
{
	struct agent *a = arg;
	struct supervisor_conn conn;

	while (supervisor_hear(&a->supervisor, &conn))
		if (conn.fd >= 0)
			agent_conn_add(a, &conn);
	agent_reap(a);
	if (a->supervisor.control < 0)
		orphaned(a);
}

static void ward_look(void *arg)
{
	ward_ready(arg, 0);
}

void agent_ward_start(struct agent *a)
{
	a->supervisor.accepted = accepted;
	a->supervisor.arg = a;
	loop_add(&a->loop, &a->ward_source, a->supervisor.control, EPOLLIN, ward_ready, a);
}

void agent_ward_look(struct agent *a)
{
	loop_timer_set(&a->loop, &a->ward_looks, 0, ward_look, a);
}

int agent_listen_at(const struct agent *a, const char *what, int type, char name[ADDRESS_MAX])
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	uint32_t unforeseen;
	size_t len;
	int fd;

	_Static_assert(ADDRESS_MAX <= sizeof(sa.sun_path), "a name and the zero before it fit");
	if (getrandom(&unforeseen, sizeof(unforeseen), 0) != (ssize_t)sizeof(unforeseen))
		return -1;
	/* by our pid too: a job that was restarted may have the name of one that still ends */
	snprintf(name, ADDRESS_MAX, "hale/%u/%.60s/%s.%d.%08x", (unsigned)geteuid(), a->setup.job,
		 what, (int)getpid(), unforeseen);
	len = strlen(name);
	memcpy(sa.sun_path + 1, name, len);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && (bind(fd, (struct sockaddr *)&sa,
			     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) != 0 ||
			listen(fd, SOMAXCONN) != 0)) {
		int e = errno;

		close(fd);
		errno = e;
		fd = -1;
	}
	return fd;
}

hale_status_t agent_listen(struct agent *a, struct error *err)
{
	uint64_t secret;

	if (getrandom(&secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot make a token for the ranks");
	snprintf(a->door.token, sizeof(a->door.token), "%016lx", (unsigned long)secret);
	a->door.listener = agent_listen_at(a, "agent", SOCK_SEQPACKET, a->door.address);
	if (a->door.listener < 0)
		return error_sys(err, HALE_ERR_SYSTEM, "cannot listen for the ranks");
	memcpy(a->supervisor.book->address, a->door.address, sizeof(a->door.address));
	memcpy(a->supervisor.book->token, a->door.token, sizeof(a->door.token));
	supervisor_hold(&a->supervisor, HOLD_RANKS, 0, a->door.listener);
	return HALE_OK;
}
