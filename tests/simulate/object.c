/* SPDX-License-Identifier: BSD-3-Clause */
/* Pipes, sockets, epoll, and the other things that descriptors stand for. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include "kernel.h"

enum { PIPE_BYTES = 65536, SOCKET_BYTES = 212992, BACKLOG_MAX = 4096 };

struct object *object_new(enum object_kind kind)
{
	struct object *o = calloc(1, sizeof(*o));

	o->kind = kind;
	o->refs = 1;
	o->number = ++kernel->objects;
	o->next = kernel->all;
	o->before = &kernel->all;
	if (o->next)
		o->next->before = &o->next;
	kernel->all = o;
	return o;
}

void object_changed(struct object *o)
{
	for (size_t i = 0; i < o->waiter_count; i++)
		o->waiters[i]->check = true;
	for (size_t i = 0; i < o->epoll_count; i++)
		object_changed(o->epolls[i]);
}

/* ---- the end of one ---- */

static void leave_epolls(struct object *o)
{
	for (size_t i = 0; i < o->epoll_count; i++) {
		struct object *ep = o->epolls[i];

		for (size_t k = 0; k < ep->u.epoll.count;)
			if (ep->u.epoll.entries[k].o == o)
				ep->u.epoll.entries[k] = ep->u.epoll.entries[--ep->u.epoll.count];
			else
				k++;
	}
	free(o->epolls);
}

static void leave_waiters(struct object *o)
{
	for (size_t i = 0; i < o->waiter_count; i++) {
		struct proc *p = o->waiters[i];

		p->check = true;
		for (size_t k = 0; k < p->wait_count;)
			if (p->waits[k] == o)
				p->waits[k] = p->waits[--p->wait_count];
			else
				k++;
	}
	free(o->waiters);
}

static void end_epoll(struct object *ep)
{
	for (size_t i = 0; i < ep->u.epoll.count; i++) {
		struct object *o = ep->u.epoll.entries[i].o;

		for (size_t k = 0; k < o->epoll_count; k++) {
			if (o->epolls[k] == ep) {
				o->epolls[k] = o->epolls[--o->epoll_count];
				break;
			}
		}
	}
	free(ep->u.epoll.entries);
}

static void packet_free(struct packet *k)
{
	for (int i = 0; i < k->passed_count; i++)
		object_drop(k->passed[i]);
	free(k);
}

static void unbind(struct object *o)
{
	struct machine *h = o->u.socket.host;

	for (size_t i = 0; h && i < h->listener_count; i++) {
		if (h->listeners[i] == o) {
			h->listeners[i] = h->listeners[--h->listener_count];
			break;
		}
	}
}

void object_empty(struct object *o)
{
	struct packet *k;

	if (o->kind != OBJ_SOCKET)
		return;
	for (size_t i = 0; i < o->u.socket.backlog_count; i++)
		object_drop(o->u.socket.backlog[i]);
	o->u.socket.backlog_count = 0;
	while ((k = o->u.socket.first)) {
		o->u.socket.first = k->next;
		packet_free(k);
	}
	o->u.socket.last = &o->u.socket.first;
}

static void end_socket(struct object *o)
{
	struct object *peer = o->u.socket.peer;

	unbind(o);
	object_empty(o);
	free(o->u.socket.backlog);
	if (peer) {
		peer->u.socket.peer = NULL;
		object_changed(peer);
	}
}

static void end_pipe(struct object *o)
{
	struct pipe_buffer *b = o->u.pipe;

	if (o->kind == OBJ_PIPE_IN) {
		b->readers = 0;
		b->in = NULL;
	} else {
		b->writers = 0;
		b->out = NULL;
	}
	if (b->in)
		object_changed(b->in);
	if (b->out)
		object_changed(b->out);
	if (!b->in && !b->out) {
		free(b->bytes);
		free(b);
	}
}

void object_drop(struct object *o)
{
	if (--o->refs > 0)
		return;
	leave_waiters(o);
	leave_epolls(o);
	if (o->kind == OBJ_PIPE_IN || o->kind == OBJ_PIPE_OUT)
		end_pipe(o);
	if (o->kind == OBJ_SOCKET)
		end_socket(o);
	if (o->kind == OBJ_EPOLL)
		end_epoll(o);
	if (o->kind == OBJ_FOLDER)
		free(o->u.file.path);
	if ((o->kind == OBJ_FILE || o->kind == OBJ_FOLDER) && o->u.file.node &&
	    --o->u.file.node->opened == 0 && o->u.file.node->links == 0)
		disk_free(o->u.file.node);
	/* memory stays mapped until the end of the world */
	if (o->kind == OBJ_MEMFD)
		free(o->u.memory);
	*o->before = o->next;
	if (o->next)
		o->next->before = o->before;
	free(o);
}

/* ---- pipes ---- */

void object_pipe(struct object **in, struct object **out)
{
	struct pipe_buffer *b = calloc(1, sizeof(*b));

	*in = object_new(OBJ_PIPE_IN);
	*out = object_new(OBJ_PIPE_OUT);
	b->bytes = malloc(PIPE_BYTES);
	b->readers = b->writers = 1;
	b->in = *in;
	b->out = *out;
	(*in)->u.pipe = (*out)->u.pipe = b;
	(*out)->flags = O_WRONLY;
}

static ssize_t pipe_read(struct pipe_buffer *b, void *bytes, size_t len)
{
	size_t n = b->end - b->begin < len ? b->end - b->begin : len;

	if (n == 0 && b->writers) {
		errno = EAGAIN;
		return -1;
	}
	memcpy(bytes, b->bytes + b->begin, n);
	b->begin += n;
	if (b->begin == b->end)
		b->begin = b->end = 0;
	if (b->out)
		object_changed(b->out);
	return (ssize_t)n;
}

static ssize_t pipe_write(struct pipe_buffer *b, const void *bytes, size_t len)
{
	size_t room;

	if (!b->readers) {
		errno = EPIPE;
		return -1;
	}
	memmove(b->bytes, b->bytes + b->begin, b->end - b->begin);
	b->end -= b->begin;
	b->begin = 0;
	room = PIPE_BYTES - b->end;
	if (room == 0 || (len <= 4096 && room < len)) {
		errno = EAGAIN;
		return -1;
	}
	len = len < room ? len : room;
	memcpy(b->bytes + b->end, bytes, len);
	b->end += len;
	object_changed(b->in);
	return (ssize_t)len;
}

/* ---- sockets ---- */

struct object *object_socket(int type)
{
	struct object *o = object_new(OBJ_SOCKET);

	o->flags = O_RDWR;
	o->u.socket.type = type;
	o->u.socket.last = &o->u.socket.first;
	o->u.socket.host = kernel->running ? kernel->running->host : NULL;
	return o;
}

static void join(struct object *a, struct object *b)
{
	a->u.socket.peer = b;
	b->u.socket.peer = a;
	a->u.socket.had_peer = b->u.socket.had_peer = true;
}

void object_socket_pair(int type, struct object **a, struct object **b)
{
	*a = object_socket(type);
	*b = object_socket(type);
	join(*a, *b);
	(*a)->u.socket.peer_pid = (*b)->u.socket.peer_pid = kernel->running->pid;
}

ssize_t object_send(struct object *o, const void *bytes, size_t len, struct object **passed,
		    int passed_count)
{
	struct object *peer = o->u.socket.peer;
	struct packet *k;
	size_t room;

	if (!peer || o->u.socket.shut_out || peer->u.socket.shut_in) {
		errno = !o->u.socket.had_peer ? ENOTCONN : EPIPE;
		return -1;
	}
	room = peer->u.socket.bytes < SOCKET_BYTES ? SOCKET_BYTES - peer->u.socket.bytes : 0;
	if (room == 0 || (o->u.socket.type != SOCK_STREAM && room < len + 64)) {
		errno =
		    len > SOCKET_BYTES - 64 && o->u.socket.type != SOCK_STREAM ? EMSGSIZE : EAGAIN;
		return -1;
	}
	if (o->u.socket.type == SOCK_STREAM && len > room)
		len = room;
	k = calloc(1, sizeof(*k) + len);
	memcpy(k->bytes, bytes, len);
	k->len = len;
	for (int i = 0; i < passed_count; i++) {
		passed[i]->refs++;
		k->passed[k->passed_count++] = passed[i];
	}
	*peer->u.socket.last = k;
	peer->u.socket.last = &k->next;
	peer->u.socket.bytes += len + (o->u.socket.type == SOCK_STREAM ? 0 : 64);
	object_changed(peer);
	return (ssize_t)len;
}

static void take_first(struct object *o)
{
	struct packet *k = o->u.socket.first;

	o->u.socket.first = k->next;
	if (!k->next)
		o->u.socket.last = &o->u.socket.first;
	free(k);
}

ssize_t object_receive(struct object *o, void *bytes, size_t len, bool peek, struct object **passed,
		       int *passed_count, bool *truncated)
{
	bool stream = o->u.socket.type == SOCK_STREAM;
	struct packet *k = o->u.socket.first;
	size_t got = 0;

	if (passed_count)
		*passed_count = 0;
	if (!k) {
		if (o->u.socket.peer && !o->u.socket.shut_in &&
		    !o->u.socket.peer->u.socket.shut_out) {
			errno = EAGAIN;
			return -1;
		}
		if (!o->u.socket.had_peer) {
			errno = ENOTCONN;
			return -1;
		}
		return 0;
	}
	do {
		size_t n = k->len - k->at < len - got ? k->len - k->at : len - got;

		memcpy((char *)bytes + got, k->bytes + k->at, n);
		got += n;
		if (truncated)
			*truncated = !stream && n < k->len;
		if (peek)
			break;
		for (int i = 0; i < k->passed_count; i++) {
			if (passed && *passed_count < 16)
				passed[(*passed_count)++] = k->passed[i];
			else
				object_drop(k->passed[i]);
		}
		k->passed_count = 0;
		k->at += n;
		if (stream)
			o->u.socket.bytes -= n;
		if (!stream || k->at == k->len) {
			if (!stream)
				o->u.socket.bytes -= k->len + 64;
			take_first(o);
		}
		k = o->u.socket.first;
	} while (stream && k && got < len && !k->passed_count);
	if (o->u.socket.peer)
		object_changed(o->u.socket.peer);
	return (ssize_t)got;
}

struct object *object_listener(struct machine *h, const char *name, size_t len)
{
	for (size_t i = 0; i < h->listener_count; i++) {
		struct object *o = h->listeners[i];

		if (o->u.socket.name_len == len && !memcmp(o->u.socket.name, name, len))
			return o;
	}
	return NULL;
}

int object_connect(struct object *o, struct machine *h, const char *name, size_t len)
{
	struct object *l = object_listener(h, name, len), *other;

	if (!l || !l->u.socket.listening || l->u.socket.backlog_count == BACKLOG_MAX) {
		errno = ECONNREFUSED;
		return -1;
	}
	other = object_socket(o->u.socket.type);
	other->u.socket.host = h;
	join(o, other);
	other->u.socket.peer_pid = kernel->running->pid;
	o->u.socket.peer_pid = l->u.socket.peer_pid;
	l->u.socket.backlog =
	    realloc(l->u.socket.backlog, (l->u.socket.backlog_count + 1) * sizeof(struct object *));
	l->u.socket.backlog[l->u.socket.backlog_count++] = other;
	object_changed(l);
	return 0;
}

struct object *object_accept(struct object *l)
{
	struct object *o;

	if (!l->u.socket.listening || l->u.socket.backlog_count == 0) {
		errno = l->u.socket.listening ? EAGAIN : EINVAL;
		return NULL;
	}
	o = l->u.socket.backlog[0];
	memmove(l->u.socket.backlog, l->u.socket.backlog + 1,
		--l->u.socket.backlog_count * sizeof(o));
	return o;
}

/* ---- all kinds ---- */

static bool target_is_gone(const struct object *o)
{
	return !o->u.target || !proc_alive(o->u.target);
}

static uint32_t socket_events(const struct object *o)
{
	const struct object *peer = o->u.socket.peer;
	bool over =
	    o->u.socket.had_peer && (!peer || peer->u.socket.shut_out || o->u.socket.shut_in);
	uint32_t e = 0;

	if (o->u.socket.listening)
		return o->u.socket.backlog_count ? EPOLLIN : 0;
	if (!o->u.socket.had_peer)
		return EPOLLHUP | EPOLLOUT;
	if (o->u.socket.first || over)
		e |= EPOLLIN;
	if (over)
		e |= EPOLLRDHUP;
	if (!peer)
		return e | EPOLLHUP | EPOLLOUT;
	if (o->u.socket.shut_out || peer->u.socket.bytes < SOCKET_BYTES / 2)
		e |= EPOLLOUT;
	return e;
}

uint32_t object_events(struct object *o, const struct proc *p)
{
	const struct pipe_buffer *b = o->u.pipe;

	switch (o->kind) {
	case OBJ_PIPE_IN:
		return (b->end > b->begin ? EPOLLIN : 0) | (b->writers ? 0 : EPOLLHUP);
	case OBJ_PIPE_OUT:
		return (PIPE_BYTES - (b->end - b->begin) >= 4096 ? EPOLLOUT : 0) |
		       (b->readers ? 0 : EPOLLERR);
	case OBJ_SOCKET:
		return socket_events(o);
	case OBJ_SIGNALFD:
		return p->pending & o->u.signals ? EPOLLIN : 0;
	case OBJ_TIMERFD:
		return o->u.timer.at && o->u.timer.at <= kernel->now ? EPOLLIN : 0;
	case OBJ_PIDFD:
		return target_is_gone(o) ? EPOLLIN : 0;
	case OBJ_EPOLL:
		return 0;
	default:
		return EPOLLIN | EPOLLOUT;
	}
}

size_t object_unread(const struct object *o)
{
	size_t n = 0;

	if (o->kind == OBJ_PIPE_IN)
		return o->u.pipe->end - o->u.pipe->begin;
	if (o->kind == OBJ_PIPE_OUT)
		return o->u.pipe->end - o->u.pipe->begin;
	if (o->kind == OBJ_SOCKET)
		for (const struct packet *k = o->u.socket.first; k; k = k->next)
			n += k->len - k->at;
	return n;
}

static ssize_t read_signals(struct object *o, void *bytes, size_t len)
{
	struct proc *p = kernel->running;
	uint64_t due = p->pending & o->u.signals;
	struct signalfd_siginfo info = {0};
	int sig;

	if (!due || len < sizeof(info)) {
		errno = EAGAIN;
		return -1;
	}
	sig = __builtin_ctzll(due) + 1;
	p->pending &= ~(1ull << (sig - 1));
	info.ssi_signo = (uint32_t)sig;
	info.ssi_pid = (uint32_t)p->sender[sig];
	memcpy(bytes, &info, sizeof(info));
	return sizeof(info);
}

static ssize_t read_timer(struct object *o, void *bytes, size_t len)
{
	uint64_t count = 1;

	if (!o->u.timer.at || o->u.timer.at > kernel->now || len < sizeof(count)) {
		errno = EAGAIN;
		return -1;
	}
	if (o->u.timer.every) {
		count += (kernel->now - o->u.timer.at) / o->u.timer.every;
		o->u.timer.at += count * o->u.timer.every;
	} else {
		o->u.timer.at = 0;
	}
	memcpy(bytes, &count, sizeof(count));
	return sizeof(count);
}

ssize_t object_read(struct object *o, void *bytes, size_t len)
{
	switch (o->kind) {
	case OBJ_PIPE_IN:
		return pipe_read(o->u.pipe, bytes, len);
	case OBJ_SOCKET:
		return object_receive(o, bytes, len, false, NULL, NULL, NULL);
	case OBJ_SIGNALFD:
		return read_signals(o, bytes, len);
	case OBJ_TIMERFD:
		return read_timer(o, bytes, len);
	case OBJ_FILE:
	case OBJ_MEMFD:
		return disk_read(o, bytes, len, -1);
	case OBJ_NULL:
	case OBJ_CONSOLE:
		return 0;
	default:
		errno = EINVAL;
		return -1;
	}
}

ssize_t object_write(struct object *o, const void *bytes, size_t len)
{
	switch (o->kind) {
	case OBJ_PIPE_OUT:
		return pipe_write(o->u.pipe, bytes, len);
	case OBJ_SOCKET:
		return object_send(o, bytes, len, NULL, 0);
	case OBJ_FILE:
	case OBJ_MEMFD:
		return disk_write(o, bytes, len, -1);
	case OBJ_CONSOLE:
		if (kernel->on_output)
			kernel->on_output(kernel->running, o->u.file.console, bytes, len);
		return (ssize_t)len;
	case OBJ_NULL:
		return (ssize_t)len;
	default:
		errno = EINVAL;
		return -1;
	}
}

/* ---- epoll ---- */

static struct epoll_entry *entry_of(struct object *ep, int fd, const struct object *o)
{
	for (size_t i = 0; i < ep->u.epoll.count; i++)
		if (ep->u.epoll.entries[i].fd == fd && ep->u.epoll.entries[i].o == o)
			return &ep->u.epoll.entries[i];
	return NULL;
}

int object_epoll_ctl(struct object *ep, int op, int fd, struct object *o,
		     const struct epoll_event *e)
{
	struct epoll_entry *k = entry_of(ep, fd, o);

	if (o->kind == OBJ_FILE || o->kind == OBJ_FOLDER || o->kind == OBJ_NULL) {
		errno = EPERM;
		return -1;
	}
	if ((op == EPOLL_CTL_ADD) == (k != NULL)) {
		errno = k ? EEXIST : ENOENT;
		return -1;
	}
	if (op == EPOLL_CTL_MOD) {
		k->event = *e;
	} else if (op == EPOLL_CTL_DEL) {
		*k = ep->u.epoll.entries[--ep->u.epoll.count];
		for (size_t i = 0; i < o->epoll_count; i++) {
			if (o->epolls[i] == ep) {
				o->epolls[i] = o->epolls[--o->epoll_count];
				break;
			}
		}
	} else {
		ep->u.epoll.entries =
		    realloc(ep->u.epoll.entries, (ep->u.epoll.count + 1) * sizeof(*k));
		ep->u.epoll.entries[ep->u.epoll.count++] =
		    (struct epoll_entry){.fd = fd, .o = o, .event = *e};
		o->epolls = realloc(o->epolls, (o->epoll_count + 1) * sizeof(struct object *));
		o->epolls[o->epoll_count++] = ep;
	}
	object_changed(ep);
	return 0;
}

/* One of those that are ready, by chance; 0: none is. */
int object_epoll_take(struct object *ep, struct proc *p, struct epoll_event *out)
{
	uint64_t count = 0;

	for (size_t i = 0; i < ep->u.epoll.count; i++) {
		struct epoll_entry *k = &ep->u.epoll.entries[i];
		uint32_t now = object_events(k->o, p) & (k->event.events | EPOLLHUP | EPOLLERR);

		if (!now || kernel_random(++count) != 0)
			continue;
		out->events = now;
		out->data = k->event.data;
	}
	return count > 0;
}
