/* SPDX-License-Identifier: BSD-3-Clause */
/* Links that go through the brokers' owners (broker.h, struct broker_carrier): a star with broker 0
 * in its middle. As with ZeroMQ there are sockets to the one above, each with a number of its own
 * (channel), and one for all below, who are told apart by who they are and by that number: what is
 * left of a link that was given up is taken for nobody's.
 *
 * What comes in waits in order until the owner dispatches, so that a storm takes no more of the
 * owner's time than it gives; the owner's window bounds what waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ftb/broker_private.h"

struct carried_socket {
	uint32_t channel;
	int peer;
	struct carried_socket *next;
};

struct carried_packet {
	struct carried_packet *next;
	int from;
	uint32_t channel;
	bool up;
	size_t len;
	uint8_t bytes[];
};

struct carried {
	struct broker_carrier c;
	uint32_t channels; /* made so far */
	struct carried_socket *sockets;
	struct carried_packet *first, **last;
};

/* Of one below: who, and which of its sockets. */
struct ident {
	uint32_t from, channel;
};
_Static_assert(sizeof(struct ident) <= IDENT_MAX, "a place for it in a link");

hale_status_t carried_open(struct broker *b, const struct broker_carrier *c, struct error *err)
{
	struct tree *t = b->tree;

	if (c->count < 1 || c->count > PEERS_MAX || c->self < 0 || c->self >= c->count)
		return error_set(err, HALE_ERR_ARGUMENT, "at most %d brokers", PEERS_MAX);
	t->carried = calloc(1, sizeof(*t->carried));
	t->peers = calloc((size_t)c->count, sizeof(*t->peers));
	if (!t->carried || !t->peers)
		return error_set(err, HALE_ERR_MEMORY, "no memory for the event broker");
	t->carried->c = *c;
	t->carried->c.names = NULL;
	/* none that was used before this process was made is used again */
	t->carried->channels = (uint32_t)ftb_random();
	t->carried->last = &t->carried->first;
	t->count = c->count;
	t->self = c->self;
	t->router = t->carried;
	for (int i = 0; i < c->count; i++) {
		if (c->names)
			snprintf(t->peers[i].name, sizeof(t->peers[i].name), "%.63s", c->names[i]);
		else
			snprintf(t->peers[i].name, sizeof(t->peers[i].name), "broker %d", i);
	}
	return HALE_OK;
}

void carried_close(struct broker *b)
{
	struct carried *k = b->tree->carried;

	while (k->first) {
		struct carried_packet *p = k->first;

		k->first = p->next;
		free(p);
	}
	while (k->sockets)
		carried_disconnect(b, k->sockets);
	free(k);
	b->tree->carried = NULL;
	b->tree->router = NULL;
}

void *carried_connect(struct broker *b, int peer)
{
	struct carried *k = b->tree->carried;
	struct carried_socket *s = peer == 0 ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return NULL;
	s->channel = ++k->channels;
	s->peer = peer;
	s->next = k->sockets;
	k->sockets = s;
	return s;
}

void carried_disconnect(struct broker *b, void *socket)
{
	for (struct carried_socket **s = &b->tree->carried->sockets; *s; s = &(*s)->next) {
		if (*s != socket)
			continue;
		*s = (*s)->next;
		free(socket);
		return;
	}
}

enum out_result carried_send(struct broker *b, void *socket, const uint8_t *ident, size_t ident_len,
			     const uint8_t *bytes, size_t len)
{
	const struct carried *k = b->tree->carried;
	const struct carried_socket *s = socket;
	struct ident to;
	enum broker_sent sent;

	if (ident) {
		memcpy(&to, ident, sizeof(to));
		sent = k->c.send(k->c.arg, (int)to.from, to.channel, false, bytes, len);
	} else {
		sent = k->c.send(k->c.arg, s->peer, s->channel, true, bytes, len);
	}
	return sent == BROKER_SENT ? OUT_SENT : sent == BROKER_LATER ? OUT_BLOCKED : OUT_BROKEN;
}

/* ---- what comes ---- */

bool broker_carry(struct broker *b, int from, uint32_t channel, bool up, const void *bytes,
		  size_t len)
{
	struct carried *k = b->tree ? b->tree->carried : NULL;
	struct carried_packet *p;

	if (!k || len > PACKET_MAX || from < 0 || from >= b->tree->count || from == b->tree->self ||
	    up != (b->tree->self == 0))
		return false;
	p = malloc(sizeof(*p) + len);
	if (!p)
		return false;
	*p = (struct carried_packet){.from = from, .channel = channel, .up = up, .len = len};
	memcpy(p->bytes, bytes, len);
	*k->last = p;
	k->last = &p->next;
	broker_wake(b);
	return true;
}

void broker_room(struct broker *b)
{
	broker_wake(b);
}

static bool is_of(const void *socket, const struct carried_packet *p)
{
	const struct carried_socket *s = socket;

	return s && s->channel == p->channel && s->peer == p->from;
}

static void from_above(struct broker *b, const struct carried_packet *p)
{
	struct tree *t = b->tree;

	if (t->parent && is_of(t->parent->socket, p)) {
		tree_message(b, t->parent, p->from, NULL, 0, p->bytes, p->len);
		return;
	}
	if (t->joining && is_of(t->joining->socket, p)) {
		tree_message(b, t->joining, p->from, NULL, 0, p->bytes, p->len);
		return;
	}
	for (int i = 0; i < t->seek.probes; i++) {
		if (!is_of(t->seek.probe[i].socket, p))
			continue;
		tree_probe_message(b, &t->seek.probe[i], p->bytes, p->len);
		return;
	}
}

static void from_below(struct broker *b, const struct carried_packet *p)
{
	struct ident id = {(uint32_t)p->from, p->channel};
	uint8_t ident[sizeof(id)];

	memcpy(ident, &id, sizeof(id));
	tree_message(b, tree_child(b->tree, ident, sizeof(ident)), p->from, ident, sizeof(ident),
		     p->bytes, p->len);
}

void carried_pump(struct broker *b)
{
	struct carried *k = b->tree->carried;

	for (int n = 0; n < MESSAGES_A_TURN && k->first; n++) {
		struct carried_packet *p = k->first;

		k->first = p->next;
		if (!k->first)
			k->last = &k->first;
		if (p->up)
			from_below(b, p);
		else
			from_above(b, p);
		k->c.handled(k->c.arg, p->from, p->len);
		free(p);
	}
}

bool carried_waiting(const struct broker *b)
{
	return b->tree->carried->first != NULL;
}
