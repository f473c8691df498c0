/* SPDX-License-Identifier: BSD-3-Clause */
/* ZeroMQ between brokers. A broker has one router for its children, one dealer to its parent, and
 * one dealer for each candidate that it asks to be its parent.
 *
 * CURVE everywhere. The authenticator (ZAP) lets in those whose key is in the list; each message
 * brings along the place of its sender's key. So nobody speaks in another's name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "ftb/broker_private.h"
#include "ftb/zmq_calls.h"

enum { HWM = 64, LINGER_MS = 100 }; /* messages of at most 64 KiB */

static bool set_int(void *socket, int option, int value)
{
	return zmq.setsockopt(socket, option, &value, sizeof(value)) == 0;
}

static int fd_of(void *socket)
{
	int fd = -1;
	size_t len = sizeof(fd);

	return zmq.getsockopt(socket, ZMQ_FD, &fd, &len) == 0 ? fd : -1;
}

static bool in_epoll(struct broker *b, void *socket)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};

	return epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd_of(socket), &e) == 0;
}

static void close_socket(struct broker *b, void *socket)
{
	if (!socket)
		return;
	epoll_ctl(b->epoll, EPOLL_CTL_DEL, fd_of(socket), NULL);
	zmq.close(socket);
}

/* tcp://[fd00::1]:7100. A socket for addresses of IPv6 would be refused where there is none. */
static bool set_family(void *s, const char *address)
{
	return !strchr(address, '[') || set_int(s, ZMQ_IPV6, 1);
}

static bool set_common(void *s, int linger, const char *address)
{
	return set_family(s, address) && set_int(s, ZMQ_LINGER, linger) &&
	       set_int(s, ZMQ_SNDHWM, HWM) && set_int(s, ZMQ_RCVHWM, HWM) &&
	       set_int(s, ZMQ_HANDSHAKE_IVL, 2000) &&
	       zmq.setsockopt(s, ZMQ_MAXMSGSIZE, &(int64_t){PACKET_MAX}, sizeof(int64_t)) == 0;
}

/* ---- opening ---- */

static bool open_router(struct tree *t)
{
	void *s = t->router = zmq.socket(t->context, ZMQ_ROUTER);

	return s && set_common(s, LINGER_MS, t->peers[t->self].address) &&
	       set_int(s, ZMQ_ROUTER_MANDATORY, 1) && set_int(s, ZMQ_CURVE_SERVER, 1) &&
	       zmq.setsockopt(s, ZMQ_CURVE_SECRETKEY, t->secret_key, 41) == 0 &&
	       zmq.setsockopt(s, ZMQ_ZAP_DOMAIN, "hale", 4) == 0 &&
	       zmq.bind(s, t->peers[t->self].address) == 0;
}

hale_status_t wire_open(struct broker *b, struct error *err)
{
	struct tree *t = b->tree;

	if (zmq_calls_load(err) != HALE_OK)
		return err->code;
	t->context = zmq.ctx_new();
	if (!t->context)
		return error_set(err, HALE_ERR_MEMORY, "no memory for ZeroMQ");
	zmq.ctx_set(t->context, ZMQ_BLOCKY, 0);
	t->zap = zmq.socket(t->context, ZMQ_REP);
	if (!t->zap || !set_int(t->zap, ZMQ_LINGER, 0) ||
	    zmq.bind(t->zap, "inproc://zeromq.zap.01") != 0 || !in_epoll(b, t->zap))
		return error_set(err, HALE_ERR_SYSTEM, "can't set up ZeroMQ: %s",
				 zmq.strerror(errno));
	if (!open_router(t) || !in_epoll(b, t->router))
		return error_set(err, HALE_ERR_SYSTEM, "can't listen at %s for other brokers: %s",
				 t->peers[t->self].address, zmq.strerror(errno));
	return HALE_OK;
}

void wire_close(struct broker *b)
{
	struct tree *t = b->tree;

	if (t->carried) {
		carried_close(b);
		return;
	}

	close_socket(b, t->router);
	close_socket(b, t->zap);
	if (t->context)
		zmq.ctx_term(t->context);
	t->router = t->zap = t->context = NULL;
}

void *wire_connect(struct broker *b, int peer)
{
	struct tree *t = b->tree;
	void *s;

	if (t->carried)
		return carried_connect(b, peer);
	s = zmq.socket(t->context, ZMQ_DEALER);
	if (!s)
		return NULL;
	if (!set_common(s, 0, t->peers[peer].address) || !set_int(s, ZMQ_RECONNECT_IVL, 50) ||
	    !set_int(s, ZMQ_RECONNECT_IVL_MAX, 500) || !set_int(s, ZMQ_CONNECT_TIMEOUT, 1000) ||
	    zmq.setsockopt(s, ZMQ_CURVE_SERVERKEY, t->peers[peer].key_text, 41) != 0 ||
	    zmq.setsockopt(s, ZMQ_CURVE_PUBLICKEY, t->public_key, 41) != 0 ||
	    zmq.setsockopt(s, ZMQ_CURVE_SECRETKEY, t->secret_key, 41) != 0 ||
	    zmq.connect(s, t->peers[peer].address) != 0 || !in_epoll(b, s)) {
		close_socket(b, s);
		return NULL;
	}
	return s;
}

void *wire_watch(struct broker *b, void *socket)
{
	char name[48];
	void *m;

	if (b->tree->carried)
		return NULL;
	snprintf(name, sizeof(name), "inproc://watch-%p", socket);
	if (zmq.socket_monitor(socket, name, ZMQ_EVENT_DISCONNECTED) != 0)
		return NULL;
	m = zmq.socket(b->tree->context, ZMQ_PAIR);
	if (!m || !set_int(m, ZMQ_LINGER, 0) || zmq.connect(m, name) != 0 || !in_epoll(b, m)) {
		close_socket(b, m);
		return NULL;
	}
	return m;
}

void wire_disconnect(struct broker *b, void *socket, void *monitor)
{
	if (b->tree->carried) {
		carried_disconnect(b, socket);
		return;
	}
	if (monitor) {
		zmq.socket_monitor(socket, NULL, 0);
		close_socket(b, monitor);
	}
	if (socket)
		set_int(socket, ZMQ_LINGER, LINGER_MS); /* so that a goodbye arrives */
	close_socket(b, socket);
}

/* ---- moving ---- */

enum out_result wire_send(struct broker *b, void *socket, const uint8_t *ident, size_t ident_len,
			  const uint8_t *bytes, size_t len)
{
	if (b->tree->carried)
		return carried_send(b, socket, ident, ident_len, bytes, len);
	if (ident && zmq.send(socket, ident, ident_len, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
		return errno == EAGAIN ? OUT_BLOCKED : OUT_BROKEN;
	if (zmq.send(socket, bytes, len, ZMQ_DONTWAIT) < 0)
		return errno == EAGAIN ? OUT_BLOCKED : OUT_BROKEN;
	return OUT_SENT;
}

/* The next frame; its length, or -1 if there is none. What does not fit is cut. */
static int frame(void *socket, uint8_t *to, size_t cap, bool *more, int *sender)
{
	zmq_msg_t m;
	const char *user;
	int n;

	zmq.msg_init(&m);
	n = zmq.msg_recv(&m, socket, ZMQ_DONTWAIT);
	if (n >= 0) {
		user = zmq.msg_gets(&m, "User-Id");
		if (sender)
			*sender = user ? atoi(user) : -1;
		if ((size_t)n > cap)
			n = (int)cap;
		memcpy(to, zmq.msg_data(&m), (size_t)n);
		*more = zmq.msg_more(&m);
	}
	zmq.msg_close(&m);
	return n;
}

/* One whole message: its first frame and its last one. False if there is none. */
static bool message(void *socket, uint8_t *first, size_t cap, int *first_len, uint8_t *last,
		    int *len, int *sender)
{
	bool more = false;

	*len = 0;
	*first_len = frame(socket, first, cap, &more, sender);
	if (*first_len < 0)
		return false;
	while (more)
		*len = frame(socket, last, PACKET_MAX, &more, sender);
	return true;
}

/* ---- who may ---- */

static int peer_by_key(const struct tree *t, const uint8_t *key)
{
	for (int i = 0; i < t->count; i++)
		if (memcmp(t->peers[i].key, key, 32) == 0)
			return i;
	return -1;
}

/* Frames: version, request id, domain, address, identity, mechanism, the client's public key. */
static bool zap_answer(struct broker *b)
{
	struct tree *t = b->tree;
	uint8_t part[7][64];
	int len[7] = {0}, n = 0, peer = -1;
	bool more = true;
	char user[16];

	while (more && n < 7) {
		len[n] = frame(t->zap, part[n], sizeof(part[n]), &more, NULL);
		if (len[n] < 0)
			return false;
		n++;
	}
	for (uint8_t rest[64]; more;)
		if (frame(t->zap, rest, sizeof(rest), &more, NULL) < 0)
			break;
	if (n == 7 && len[6] == 32 && len[5] == 5 && memcmp(part[5], "CURVE", 5) == 0)
		peer = peer_by_key(t, part[6]);
	if (peer < 0) {
		b->stats.refused_keys++;
		log_info("event broker: refused a broker at %.*s, whose key is not in the list",
			 n > 3 ? len[3] : 0, (char *)part[3]);
	}
	snprintf(user, sizeof(user), "%d", peer);
	zmq.send(t->zap, "1.0", 3, ZMQ_SNDMORE);
	zmq.send(t->zap, part[1], (size_t)len[1], ZMQ_SNDMORE);
	zmq.send(t->zap, peer >= 0 ? "200" : "400", 3, ZMQ_SNDMORE);
	zmq.send(t->zap, "", 0, ZMQ_SNDMORE);
	zmq.send(t->zap, user, peer >= 0 ? strlen(user) : 0, ZMQ_SNDMORE);
	zmq.send(t->zap, "", 0, 0);
	return true;
}

/* ---- taking what has come ---- */

static int pump_router(struct broker *b, int budget)
{
	uint8_t ident[IDENT_MAX];
	int ident_len, len, sender;

	while (budget > 0 && message(b->tree->router, ident, sizeof(ident), &ident_len, b->packet,
				     &len, &sender)) {
		budget--;
		if (sender >= 0 && sender < b->tree->count)
			tree_message(b, tree_child(b->tree, ident, (size_t)ident_len), sender,
				     ident, (size_t)ident_len, b->packet, (size_t)len);
	}
	return budget;
}

static int pump_link(struct broker *b, struct ftb_link *l, int budget)
{
	int len, rest;
	uint8_t *more = b->packet; /* a dealer's messages have one frame; others are overwritten */

	while (l && !l->gone && budget > 0 &&
	       message(l->socket, b->packet, PACKET_MAX, &len, more, &rest, NULL)) {
		budget--;
		tree_message(b, l, l->peer, NULL, 0, b->packet, (size_t)len);
	}
	return budget;
}

static void pump_monitor(struct ftb_link *l)
{
	uint8_t event[8], rest[256];
	bool more;

	while (l && l->monitor && frame(l->monitor, event, sizeof(event), &more, NULL) >= 0) {
		while (more && frame(l->monitor, rest, sizeof(rest), &more, NULL) >= 0)
			;
		l->gone = true;
	}
}

bool wire_pump(struct broker *b)
{
	struct tree *t = b->tree;
	int budget = MESSAGES_A_TURN, len, rest;

	if (t->carried) {
		carried_pump(b);
		return carried_waiting(b);
	}
	while (zap_answer(b))
		;
	budget = pump_router(b, budget);
	budget = pump_link(b, t->parent, budget);
	budget = pump_link(b, t->joining, budget);
	for (int i = 0; i < t->seek.probes && budget > 0; i++) {
		while (budget > 0 && message(t->seek.probe[i].socket, b->packet, PACKET_MAX, &len,
					     b->packet, &rest, NULL)) {
			budget--;
			tree_probe_message(b, &t->seek.probe[i], b->packet, (size_t)len);
		}
	}
	pump_monitor(t->parent); /* last: what came before the end counts */
	b->pace.packets += (unsigned)(MESSAGES_A_TURN - budget);
	b->pace.more |= budget == 0;
	return budget == 0;
}

static bool waits(void *socket)
{
	int events = 0;
	size_t len = sizeof(events);

	return socket && zmq.getsockopt(socket, ZMQ_EVENTS, &events, &len) == 0 &&
	       (events & ZMQ_POLLIN);
}

bool wire_waiting(struct broker *b)
{
	struct tree *t = b->tree;

	if (t->carried)
		return carried_waiting(b);
	if (waits(t->zap) || waits(t->router) || (t->parent && waits(t->parent->socket)) ||
	    (t->parent && waits(t->parent->monitor)) || (t->joining && waits(t->joining->socket)))
		return true;
	for (int i = 0; i < t->seek.probes; i++)
		if (waits(t->seek.probe[i].socket))
			return true;
	return false;
}
