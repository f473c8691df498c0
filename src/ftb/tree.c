/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of brokers and its healing. States, invariants: docs/backplane.md; model:
 * docs/models/backplane.pml.
 *
 * A broker's parent stands before it in the list that all have. So there is no way to make a ring,
 * whatever is lost, delayed or thought of whom; and the first that is alive is the root. */
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include "ftb/broker_private.h"

enum { CROWD = 2 }; /* times the arity: children that a broker takes when others have died */

static int preferred(const struct tree *t)
{
	return t->self == 0 ? -1 : (t->self - 1) / (int)t->arity;
}

struct ftb_link *tree_child(struct tree *t, const uint8_t *ident, size_t ident_len)
{
	for (int i = 0; i < t->children; i++)
		if (!t->child[i]->gone && t->child[i]->ident_len == ident_len &&
		    memcmp(t->child[i]->ident, ident, ident_len) == 0)
			return t->child[i];
	return NULL;
}

static unsigned room(const struct tree *t)
{
	unsigned most = CROWD * t->arity;

	return (unsigned)t->children < most ? most - (unsigned)t->children : 0;
}

static void child_drop(struct broker *b, int i)
{
	struct tree *t = b->tree;

	log_info("event broker: %s is no longer below this one", t->peers[t->child[i]->peer].name);
	link_free(b, t->child[i]);
	t->child[i] = t->child[--t->children];
}

/* ---- seeking a parent ---- */

static void probes_close(struct broker *b)
{
	struct seek *s = &b->tree->seek;

	for (int i = 0; i < s->probes; i++)
		if (s->probe[i].socket)
			wire_disconnect(b, s->probe[i].socket, NULL);
	s->probes = 0;
}

/* Asks the next few candidates at once. */
static void seek_window(struct broker *b)
{
	struct tree *t = b->tree;
	struct seek *s = &t->seek;
	uint8_t packet[PACKET_HEADER];

	probes_close(b);
	ftb_packet_start(packet, PACKET_PROBE, (uint32_t)t->self);
	while (s->probes < PROBES && s->at < s->count) {
		struct probe *p = &s->probe[s->probes];
		int peer = s->order[s->at++];

		if (peer < 0) /* tried */
			continue;
		*p = (struct probe){.peer = peer, .socket = wire_connect(b, peer)};
		if (!p->socket)
			continue;
		wire_send(b, p->socket, NULL, 0, packet, sizeof(packet));
		s->probes++;
	}
	s->decide = clock_seconds() + 1.25 * t->heartbeat;
}

static void seek_end(struct broker *b)
{
	struct tree *t = b->tree;

	probes_close(b);
	t->seek.active = false;
	t->seek_at = clock_seconds() + 5 * t->heartbeat;
	if (t->parent) { /* the better one is not there: asked again, less and less often */
		t->patience = t->patience < 50 * t->heartbeat ? 2 * t->patience : t->patience;
		t->seek_at = clock_seconds() + t->patience;
		return;
	}
	if (t->healing) {
		t->healing = false;
		b->stats.heals++;
	}
	if (t->orphan) {
		log_info("event broker: %s is a root", b->node);
		t->orphan = false;
		out_list_free(&t->held);
		t->held_bytes = 0;
	}
}

static void seek_start(struct broker *b)
{
	struct tree *t = b->tree;
	struct seek *s = &t->seek;

	if (t->self == 0) {
		seek_end(b);
		return;
	}
	s->active = true;
	s->at = 0;
	s->count = tree_candidates(t->self, t->arity, s->order);
	if (t->parent)
		s->count = 1; /* only for the one it ought to have */
	seek_window(b);
}

static void join(struct broker *b, struct probe *p)
{
	struct tree *t = b->tree;
	struct ftb_link *l = link_new(b, p->peer);

	if (!l)
		return;
	for (int i = 0; i < t->seek.count; i++)
		if (t->seek.order[i] == p->peer)
			t->seek.order[i] = -1;
	l->socket = p->socket;
	p->socket = NULL;
	l->monitor = wire_watch(b, l->socket);
	probes_close(b);
	t->joining = l;
	t->join_until = clock_seconds() + 1.25 * t->heartbeat;
	link_say(l, PACKET_JOIN);
}

void tree_probe_message(struct broker *b, struct probe *p, const uint8_t *bytes, size_t len)
{
	double soon = clock_seconds() + 0.15 * b->tree->heartbeat;
	struct packet k;

	if (!ftb_packet_parse(bytes, len, &k) || k.kind != PACKET_HERE || k.len != 4 ||
	    k.count != (uint32_t)p->peer)
		return;
	p->here = true;
	p->room = get_u32(k.body);
	if (b->tree->seek.decide > soon) /* others, which would be better, may be on the way */
		b->tree->seek.decide = soon;
}

static void seek_step(struct broker *b, double now)
{
	struct tree *t = b->tree;
	struct seek *s = &t->seek;
	bool better_silent = false;

	if (!s->active || t->joining)
		return;
	for (int i = 0; i < s->probes; i++) {
		struct probe *p = &s->probe[i];

		if (p->here && p->room && (!better_silent || now >= s->decide)) {
			join(b, p);
			return;
		}
		better_silent |= !p->here;
	}
	if (now < s->decide)
		return;
	if (s->at < s->count)
		seek_window(b);
	else
		seek_end(b);
}

/* ---- the parent ---- */

static void parent_drop(struct broker *b, const char *why)
{
	struct tree *t = b->tree;

	log_info("event broker: lost the one above, %s: %s", t->peers[t->parent->peer].name, why);
	link_free(b, t->parent);
	t->parent = NULL;
	t->orphan = t->healing = true;
	if (t->joining) /* a better one, already asked */
		return;
	seek_start(b);
}

static void join_failed(struct broker *b)
{
	struct tree *t = b->tree;

	link_free(b, t->joining);
	t->joining = NULL;
	if (t->parent) {
		seek_end(b);
		return;
	}
	t->seek.at = 0; /* those that were tried are crossed out */
	t->seek.active = true;
	seek_window(b);
}

static void take_accept(struct broker *b, struct ftb_link *l)
{
	struct tree *t = b->tree;

	if (l != t->joining)
		return;
	t->joining = NULL;
	if (t->parent) {
		link_say(t->parent, PACKET_LEAVE);
		link_free(b, t->parent);
	}
	t->parent = l;
	t->seek.active = false;
	t->patience = 5 * t->heartbeat;
	t->seek_at = clock_seconds() + t->patience;
	if (t->healing) {
		t->healing = false;
		b->stats.heals++;
	}
	log_info("event broker: %s is above %s now", t->peers[l->peer].name, b->node);
	if (!link_up(b, l))
		l->gone = true;
}

/* ---- children ---- */

static void answer(struct broker *b, enum packet_kind kind, const uint8_t *ident, size_t ident_len)
{
	uint8_t packet[PACKET_HEADER + 4];
	size_t len = PACKET_HEADER;

	ftb_packet_start(packet, kind, (uint32_t)b->tree->self);
	if (kind == PACKET_HERE) {
		put_u32(packet + len, room(b->tree));
		len += 4;
	}
	wire_send(b, b->tree->router, ident, ident_len, packet, len);
}

static void take_join(struct broker *b, int sender, const uint8_t *ident, size_t ident_len)
{
	struct tree *t = b->tree;
	struct ftb_link **grown, *l;

	for (int i = 0; i < t->children; i++)
		if (t->child[i]->peer == sender)
			child_drop(b, i--); /* it has lost that link, or it would not ask */
	grown = sender > t->self && room(t) && ident_len <= IDENT_MAX
		    ? realloc(t->child, (size_t)(t->children + 1) * sizeof(struct ftb_link *))
		    : NULL;
	l = grown ? link_new(b, sender) : NULL;
	if (grown)
		t->child = grown;
	if (!l) {
		answer(b, PACKET_LEAVE, ident, ident_len);
		return;
	}
	memcpy(l->ident, ident, ident_len);
	l->ident_len = ident_len;
	t->child[t->children++] = l;
	link_say(l, PACKET_ACCEPT);
	log_info("event broker: %s is below %s now", t->peers[sender].name, b->node);
	if (!link_up(b, l))
		l->gone = true;
}

/* ---- messages ---- */

struct from_link {
	struct broker *b;
	struct ftb_link *l;
};

static void take_event(const struct ftb_event *e, const uint8_t *bytes, size_t len, void *arg)
{
	struct from_link *f = arg;

	route_event(f->b, &f->l->r, e, bytes, len);
}

static void take_events(struct broker *b, struct ftb_link *l, const struct packet *p)
{
	struct from_link f = {.b = b, .l = l};

	if (!ftb_events_each(p, NULL, NULL)) {
		b->stats.malformed++;
		l->gone = true;
		return;
	}
	ftb_events_each(p, take_event, &f);
}

static void take_from_link(struct broker *b, struct ftb_link *l, const struct packet *p)
{
	l->heard = clock_seconds();
	if (p->kind == PACKET_LEAVE)
		l->gone = true;
	else if (p->kind == PACKET_ACCEPT)
		take_accept(b, l);
	else if (!l->up)
		return;
	else if (p->kind == PACKET_EVENTS)
		take_events(b, l, p);
	else if (p->kind == PACKET_INTEREST)
		link_interest(b, l, p);
}

void tree_message(struct broker *b, struct ftb_link *l, int sender, const uint8_t *ident,
		  size_t ident_len, const uint8_t *bytes, size_t len)
{
	struct packet p;

	if (!ftb_packet_parse(bytes, len, &p)) {
		b->stats.malformed++;
		if (l)
			l->gone = true;
	} else if (ident && p.kind == PACKET_PROBE) {
		answer(b, PACKET_HERE, ident, ident_len);
	} else if (ident && p.kind == PACKET_JOIN) {
		take_join(b, sender, ident, ident_len);
	} else if (l && l->peer == sender) {
		take_from_link(b, l, &p);
	} else if (ident && p.kind != PACKET_LEAVE) {
		answer(b, PACKET_LEAVE, ident, ident_len); /* it thinks that it is below us */
	}
}

/* Drops what is marked; nothing else looks at links now. */
static void reap(struct broker *b, double now)
{
	struct tree *t = b->tree;

	for (int i = 0; i < t->children; i++)
		if (t->child[i]->gone || now - t->child[i]->heard > t->dead)
			child_drop(b, i--);
	if (t->parent && t->parent->gone)
		parent_drop(b, "it has gone");
	else if (t->parent && now - t->parent->heard > t->dead)
		parent_drop(b, "it is silent");
	if (t->joining && (t->joining->gone || now > t->join_until))
		join_failed(b);
}

void tree_pump(struct broker *b)
{
	double now;

	wire_pump(b);
	now = clock_seconds();
	reap(b, now);
	seek_step(b, now);
}

static void keep_alive(struct ftb_link *l, double now)
{
	if (l->up && now - l->sent >= l->b->tree->heartbeat * 0.9)
		link_say(l, PACKET_PING);
	if (l->up && l->stale)
		link_tell(l->b, l);
	if (l->r.q.blocked)
		l->r.dirty = true;
}

void tree_tick(struct broker *b)
{
	struct tree *t = b->tree;
	double now = clock_seconds();

	if (t->parent)
		keep_alive(t->parent, now);
	for (int i = 0; i < t->children; i++)
		keep_alive(t->child[i], now);
	if (!t->seek.active && !t->joining && now >= t->seek_at) {
		if (!t->parent || t->parent->peer != preferred(t))
			seek_start(b);
		else
			t->seek_at = now + 5 * t->heartbeat;
	}
}

/* ---- life ---- */

static hale_status_t find_self(struct broker *b, const struct broker_options *o, struct error *err)
{
	struct tree *t = b->tree;
	hale_status_t st = peers_read(o->peers, &t->peers, &t->count, err);

	if (st == HALE_OK)
		st = key_read(o->key, t->secret_key, t->public_key, err);
	if (st != HALE_OK)
		return st;
	while (t->self < t->count && strcmp(t->peers[t->self].key_text, t->public_key) != 0)
		t->self++;
	if (t->self == t->count)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "no line of %s has the key of this broker, %s", o->peers,
				 t->public_key);
	return HALE_OK;
}

static hale_status_t tree_open(struct broker *b, const struct broker_options *o, struct error *err)
{
	struct tree *t = b->tree;
	double tick = t->heartbeat / 4;
	struct itimerspec at = {.it_value = {.tv_nsec = 1000000}};
	hale_status_t st = o->carrier ? carried_open(b, o->carrier, err) : find_self(b, o, err);

	if (st != HALE_OK)
		return st;
	t->seek.order = calloc((size_t)t->count + 64, sizeof(int));
	if (!t->seek.order)
		return error_set(err, HALE_ERR_MEMORY, "no memory for the event broker");
	if (!o->node)
		memcpy(b->node, t->peers[t->self].name, sizeof(b->node));
	if (!o->carrier)
		st = wire_open(b, err);
	if (st != HALE_OK)
		return st;
	at.it_interval.tv_sec = (time_t)tick;
	at.it_interval.tv_nsec = (long)((tick - (double)at.it_interval.tv_sec) * 1e9);
	if (timerfd_settime(b->timer, 0, &at, NULL) != 0)
		return error_sys(err, HALE_ERR_SYSTEM, "can't set the event broker's timer");
	return HALE_OK;
}

hale_status_t tree_create(struct broker *b, const struct broker_options *o, struct error *err)
{
	struct tree *t = calloc(1, sizeof(*t));

	if (!t)
		return error_set(err, HALE_ERR_MEMORY, "no memory for the event broker");
	b->tree = t;
	t->arity = o->arity ? o->arity : BROKER_ARITY;
	t->heartbeat = o->heartbeat > 0 ? o->heartbeat : 0.2;
	t->dead = o->dead > 0 ? o->dead : 1.0;
	t->orphan = true;
	if (!o->key && !o->carrier)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "a broker with peers needs a key; `hale backplane key FILE` makes "
				 "one");
	if (t->heartbeat < 0.01 || t->dead < 2 * t->heartbeat || t->dead > 3600 || t->arity > 256)
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "a heartbeat is 10 ms or more, the time after which a broker is "
		    "dead at least twice that and at most an hour, the arity at most 256");
	return tree_open(b, o, err);
}

void tree_destroy(struct broker *b)
{
	struct tree *t = b->tree;

	if (t->parent) {
		tree_flush(t->parent);
		link_say(t->parent, PACKET_LEAVE);
		link_free(b, t->parent);
	}
	if (t->joining)
		link_free(b, t->joining);
	while (t->children) {
		struct ftb_link *l = t->child[t->children - 1];

		tree_flush(l);
		link_say(l, PACKET_LEAVE);
		link_free(b, l);
		t->children--;
	}
	probes_close(b);
	if (t->context || t->carried)
		wire_close(b);
	out_list_free(&t->held);
	free(t->child);
	free(t->seek.order);
	free(t->peers);
	explicit_bzero(t->secret_key, sizeof(t->secret_key));
	free(t);
	b->tree = NULL;
}
