/* SPDX-License-Identifier: BSD-3-Clause */
/* Links between brokers: sending, telling what is wanted, being told. */
#include <stdlib.h>
#include <string.h>
#include "ftb/broker_private.h"

/* ---- sending ---- */

enum out_result tree_send(void *to, const uint8_t *bytes, size_t len)
{
	struct ftb_link *l = to;
	enum out_result r;

	if (l->gone)
		return OUT_BROKEN;
	r = l->socket ? wire_send(l->b, l->socket, NULL, 0, bytes, len)
		      : wire_send(l->b, l->b->tree->router, l->ident, l->ident_len, bytes, len);
	if (r == OUT_SENT)
		l->sent = clock_seconds();
	if (r == OUT_BROKEN)
		l->gone = true;
	return r;
}

enum out_result link_say(struct ftb_link *l, enum packet_kind kind)
{
	uint8_t packet[PACKET_HEADER];

	ftb_packet_start(packet, kind, (uint32_t)l->b->tree->self);
	return tree_send(l, packet, sizeof(packet));
}

void tree_flush(struct ftb_link *l)
{
	outq_flush(&l->r.q, tree_send, l);
	l->r.dirty = l->r.q.blocked; /* tried again at the next dispatch or tick */
}

/* ---- interest ---- */

static bool told_already(const struct ftb_link *l, const struct interest *want, size_t count)
{
	if (count != l->told_count)
		return false;
	for (size_t i = 0; i < count; i++) {
		size_t k = 0;

		while (k < count &&
		       (memcmp(&l->told[k].filter, &want[i].filter, sizeof(want->filter)) != 0 ||
			want[i].since < l->told[k].since - 1))
			k++;
		if (k == count)
			return false;
	}
	return true;
}

void link_tell(struct broker *b, struct ftb_link *l)
{
	struct interest *want = malloc(INTEREST_MAX * sizeof(*want));
	uint8_t *packet = malloc(PACKET_HEADER + INTEREST_MAX * FILTER_WIRE_MAX), *p;
	double now = clock_seconds();
	size_t n = 0;

	l->stale = true;
	if (want && packet) {
		n = route_interest(b, &l->r, want);
		l->stale = false;
	}
	if (want && packet && (!l->told || !told_already(l, want, n))) {
		p = packet + PACKET_HEADER;
		ftb_packet_start(packet, PACKET_INTEREST, (uint32_t)n);
		for (size_t i = 0; i < n; i++) {
			double age = (now - want[i].since) * 1e3;

			p += ftb_filter_write(&want[i].filter, 0,
					      age > 4e9 ? 4000000000u : (uint32_t)age, p);
		}
		l->stale = (size_t)(p - packet) > PACKET_MAX ||
			   tree_send(l, packet, (size_t)(p - packet)) != OUT_SENT;
		if (!l->stale) {
			free(l->told);
			l->told = want;
			l->told_count = n;
			want = NULL;
		}
	}
	free(want);
	free(packet);
}

void tree_tell_interest(struct broker *b)
{
	struct tree *t = b->tree;

	if (t->parent)
		link_tell(b, t->parent);
	for (int i = 0; i < t->children; i++)
		link_tell(b, t->child[i]);
}

/* What l wants now and did not before, or for longer than it said. */
static size_t added_interest(const struct ftb_link *l, const struct interest *now, size_t count,
			     struct interest *added)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		bool known = false;

		for (size_t k = 0; k < l->r.count && !known; k++)
			known = memcmp(&l->r.want[k].filter, &now[i].filter, sizeof(now->filter)) ==
				    0 &&
				now[i].since >= l->r.want[k].since - 1;
		if (!known)
			added[n++] = now[i];
	}
	return n;
}

static bool read_interest(const struct packet *p, struct interest *want)
{
	const uint8_t *at = p->body;
	size_t left = p->len;
	double now = clock_seconds();

	for (uint32_t i = 0; i < p->count; i++) {
		uint32_t id, age;
		size_t n = ftb_filter_read(at, left, &want[i].filter, &id, &age);

		if (n == 0)
			return false;
		want[i].id = 0;
		want[i].since = now - age * 1e-3;
		at += n;
		left -= n;
	}
	return left == 0;
}

void link_interest(struct broker *b, struct ftb_link *l, const struct packet *p)
{
	struct tree *t = b->tree;
	struct interest *want, *added;
	size_t n;

	if (p->count > INTEREST_MAX) {
		l->gone = true;
		b->stats.malformed++;
		return;
	}
	want = calloc(p->count + 1, sizeof(*want));
	added = calloc(p->count + 1, sizeof(*added));
	if (!want || !added || !read_interest(p, want)) {
		b->stats.malformed++;
		l->gone = true;
		free(want);
		free(added);
		return;
	}
	n = added_interest(l, want, p->count, added);
	free(l->r.want);
	l->r.want = want;
	l->r.count = p->count;
	b->generation++;
	b->interest_changed = true;
	route_rescue(b, &l->r, added, n, l == t->parent && t->orphan ? &t->held : NULL);
	free(added);
	if (l == t->parent) {
		t->orphan = false;
		out_list_free(&t->held);
		t->held_bytes = 0;
	}
}

void tree_hold(struct tree *t, const uint8_t *bytes, size_t len)
{
	struct out_node *n;

	if (!t->orphan)
		return;
	while (t->held.head && t->held_bytes + len > HELD_BYTES) {
		n = out_list_pop(&t->held);
		t->held_bytes -= n->len;
		free(n);
	}
	n = malloc(sizeof(*n) + len);
	if (!n)
		return;
	*n = (struct out_node){.ticket = clock_ns(), .len = (uint32_t)len};
	memcpy(n->bytes, bytes, len);
	t->held_bytes += len;
	out_list_push(&t->held, n);
}

/* ---- life ---- */

struct ftb_link *link_new(struct broker *b, int peer)
{
	struct ftb_link *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->r.kind = RECEIVER_LINK;
	l->b = b;
	l->peer = peer;
	l->heard = l->since = clock_seconds();
	return l;
}

void link_free(struct broker *b, struct ftb_link *l)
{
	if (l->up)
		receiver_remove(b, &l->r);
	if (l->socket)
		wire_disconnect(b, l->socket, l->monitor);
	free(l->told);
	free(l);
}

bool link_up(struct broker *b, struct ftb_link *l)
{
	if (!receiver_add(b, &l->r))
		return false;
	l->up = true;
	l->heard = clock_seconds();
	link_tell(b, l);
	return true;
}
