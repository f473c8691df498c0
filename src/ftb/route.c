/* SPDX-License-Identifier: BSD-3-Clause */
/* Who gets an event, and whether it was here before. Invariants: docs/backplane.md. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "ftb/broker_private.h"

hale_status_t route_init(struct broker *b, struct error *err)
{
	b->route = calloc(ROUTES, sizeof(*b->route));
	b->publisher = calloc(PUBLISHERS, sizeof(*b->publisher));
	b->log.entry = calloc(LOG_ENTRIES, sizeof(*b->log.entry));
	b->log.bucket = malloc(LOG_ENTRIES * sizeof(*b->log.bucket));
	b->generation = 1;
	b->log.horizon = -1;
	if (!b->route || !b->publisher || !b->log.entry || !b->log.bucket)
		return error_set(err, HALE_ERR_MEMORY, "no memory for the event broker");
	for (size_t i = 0; i < LOG_ENTRIES; i++)
		b->log.bucket[i] = -1;
	return HALE_OK;
}

void route_fini(struct broker *b)
{
	for (size_t i = 0; b->log.entry && i < LOG_ENTRIES; i++)
		free(b->log.entry[i].bytes);
	for (size_t i = 0; b->route && i < ROUTES; i++)
		free(b->route[i].to);
	free(b->log.entry);
	free(b->log.bucket);
	free(b->publisher);
	free(b->route);
	free(b->receiver);
}

/* ---- the log ---- */

static size_t log_bucket(uint64_t publisher, uint64_t seq)
{
	uint64_t h = (publisher ^ seq * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;

	return (h >> 40) % LOG_ENTRIES;
}

static bool log_has(const struct log *l, uint64_t publisher, uint64_t seq)
{
	for (int32_t i = l->bucket[log_bucket(publisher, seq)]; i >= 0; i = l->entry[i].next)
		if (l->entry[i].publisher == publisher && l->entry[i].seq == seq)
			return true;
	return false;
}

static void log_forget_oldest(struct log *l)
{
	struct log_entry *e = &l->entry[l->first];
	int32_t *p = &l->bucket[log_bucket(e->publisher, e->seq)];

	while (*p != (int32_t)l->first)
		p = &l->entry[*p].next;
	*p = e->next;
	if (e->arrived > l->horizon)
		l->horizon = e->arrived;
	l->bytes -= e->len;
	free(e->bytes);
	e->bytes = NULL;
	l->first = (l->first + 1) % LOG_ENTRIES;
	l->count--;
}

static void log_add(struct log *l, const struct ftb_event *e, const uint8_t *bytes, size_t len,
		    double arrived)
{
	size_t i, bucket = log_bucket(e->publisher, e->seq);
	uint8_t *copy = malloc(len);

	if (!copy)
		return;
	memcpy(copy, bytes, len);
	while (l->count == LOG_ENTRIES || (l->count && l->bytes + len > LOG_BYTES))
		log_forget_oldest(l);
	i = (l->first + l->count++) % LOG_ENTRIES;
	l->entry[i] = (struct log_entry){.publisher = e->publisher,
					 .seq = e->seq,
					 .arrived = arrived,
					 .len = (uint32_t)len,
					 .next = l->bucket[bucket],
					 .bytes = copy};
	l->bucket[bucket] = (int32_t)i;
	l->bytes += len;
}

/* ---- duplicates ---- */

/* Its place in the table; the one used longest ago of eight makes room for a new one. */
static struct publisher *publisher_find(struct broker *b, uint64_t id)
{
	size_t at = (id * 0x9e3779b97f4a7c15u >> 32) % PUBLISHERS;
	struct publisher *oldest = NULL;

	for (size_t i = 0; i < 8; i++) {
		struct publisher *p = &b->publisher[(at + i) % PUBLISHERS];

		if (p->id == id) {
			p->used = ++b->publisher_clock;
			return p;
		}
		if (!oldest || p->used < oldest->used)
			oldest = p;
	}
	*oldest = (struct publisher){.id = id, .used = ++b->publisher_clock};
	return oldest;
}

/* Whether the event is here for the first time. One of WARNING or above may come behind a later one
 * when it was rescued; it is known by the log then, as long as that reaches. */
static bool first_time(struct broker *b, const struct ftb_event *e, double arrived)
{
	struct publisher *p;

	if (!ftb_event_info(e) && log_has(&b->log, e->publisher, e->seq))
		return false;
	p = publisher_find(b, e->publisher);
	if (e->seq > p->seq) {
		p->seq = e->seq;
		return true;
	}
	/* ages are rounded on every hop */
	return !ftb_event_info(e) && arrived > b->log.horizon + 1;
}

/* ---- receivers ---- */

static void changed(struct broker *b)
{
	b->generation++;
	b->interest_changed = true;
}

bool receiver_add(struct broker *b, struct receiver *r)
{
	if (b->receivers == b->receivers_cap) {
		size_t cap = b->receivers_cap ? 2 * b->receivers_cap : 16;
		struct receiver **grown = realloc(b->receiver, cap * sizeof(struct receiver *));

		if (!grown)
			return false;
		b->receiver = grown;
		b->receivers_cap = cap;
	}
	b->receiver[b->receivers++] = r;
	return true;
}

void receiver_remove(struct broker *b, struct receiver *r)
{
	for (size_t i = 0; i < b->receivers; i++)
		if (b->receiver[i] == r)
			b->receiver[i] = b->receiver[--b->receivers];
	b->stats.lost_info += r->q.lost_info;
	b->stats.lost_above += r->q.lost_above;
	free(r->want);
	r->want = NULL;
	r->count = 0;
	outq_fini(&r->q);
	changed(b);
}

bool interest_add(struct broker *b, struct receiver *r, const struct ftb_filter *f, uint32_t id,
		  double since)
{
	struct interest *grown;

	if (r->count >= INTEREST_MAX)
		return false;
	grown = realloc(r->want, (r->count + 1) * sizeof(*grown));
	if (!grown)
		return false;
	r->want = grown;
	r->want[r->count++] = (struct interest){.filter = *f, .id = id, .since = since};
	changed(b);
	return true;
}

void interest_drop(struct broker *b, struct receiver *r, uint32_t id)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->want[i].id == id)
			r->want[i--] = r->want[--r->count];
	changed(b);
}

void receiver_put(struct broker *b, struct receiver *r, const struct ftb_event *e,
		  const uint8_t *bytes, size_t len)
{
	if (r->kind == RECEIVER_CLIENT) {
		struct client *c = (struct client *)r;

		b->stats.delivered++;
		if (!c->broken && !outq_event(&r->q, e, bytes, len, client_send, c))
			c->broken = true;
	} else {
		struct ftb_link *l = (struct ftb_link *)r;

		if (!l->up)
			return;
		b->stats.forwarded++;
		outq_event(&r->q, e, bytes, len, tree_send, l);
	}
	r->dirty = true;
}

/* ---- routes ---- */

/* Whether r wants it; rescued events are for those only who asked before these happened. */
static bool wants(const struct receiver *r, const struct ftb_event *e, double arrived, bool rescued)
{
	for (size_t i = 0; i < r->count; i++)
		if (ftb_filter_match(&r->want[i].filter, e) &&
		    (!rescued || r->want[i].since <= arrived))
			return true;
	return false;
}

static bool route_fill(struct broker *b, struct route *t, const struct ftb_event *e)
{
	t->count = 0;
	if (t->cap < b->receivers) {
		struct receiver **grown = realloc(t->to, b->receivers * sizeof(struct receiver *));

		if (!grown)
			return false;
		t->to = grown;
		t->cap = b->receivers;
	}
	for (size_t i = 0; i < b->receivers; i++)
		if (wants(b->receiver[i], e, 0, false))
			t->to[t->count++] = b->receiver[i];
	t->owner = false;
	for (size_t i = 0; i < b->owned_count; i++)
		t->owner |= ftb_filter_match(&b->owned[i].filter, e);
	return true;
}

/* All that filters look at, in one piece: severity, lengths, texts. */
static struct route *route_of(struct broker *b, const struct ftb_event *e, const uint8_t *bytes)
{
	size_t texts = 0, len;
	struct route *t;
	uint64_t h;

	for (int i = 0; i < TEXT_START; i++)
		texts += e->text_len[i];
	h = XXH3_64bits(bytes + EVENT_HEADER, texts) + e->severity;
	t = &b->route[h % ROUTES];
	len = 1 + TEXT_START + texts;
	if (t->generation == b->generation && t->key_len == len && t->key[0] == e->severity &&
	    memcmp(t->key + 1, e->text_len, TEXT_START) == 0 &&
	    memcmp(t->key + 1 + TEXT_START, bytes + EVENT_HEADER, texts) == 0)
		return t;
	t->generation = 0;
	if (!route_fill(b, t, e))
		return NULL;
	t->generation = b->generation;
	t->key_len = len;
	t->key[0] = e->severity;
	memcpy(t->key + 1, e->text_len, TEXT_START);
	memcpy(t->key + 1 + TEXT_START, bytes + EVENT_HEADER, texts);
	return t;
}

static bool owner_wants(const struct owner_subscription *s, const struct ftb_event *e,
			double arrived)
{
	return s->since <= arrived && ftb_filter_match(&s->filter, e);
}

static bool given_already(const struct broker *b, const struct owner_subscription *s,
			  const struct ftb_event *e, double arrived)
{
	for (size_t i = 0; i < b->owned_count; i++)
		if (b->owned[i].id < s->id && b->owned[i].callback == s->callback &&
		    b->owned[i].arg == s->arg && owner_wants(&b->owned[i], e, arrived))
			return true;
	return false;
}

/* By id: a callback may subscribe and unsubscribe. */
static void give_owner(struct broker *b, const struct ftb_event *e, double arrived)
{
	unsigned done = 0, end = b->owned_next;
	struct ftb_shown s;

	ftb_event_show(e, &s);
	while (done < end) {
		struct owner_subscription *next = NULL;

		for (size_t i = 0; i < b->owned_count; i++)
			if (b->owned[i].id >= done && b->owned[i].id < end &&
			    (!next || b->owned[i].id < next->id))
				next = &b->owned[i];
		if (!next)
			return;
		done = next->id + 1;
		if (owner_wants(next, e, arrived) && !given_already(b, next, e, arrived))
			next->callback(&s.event, next->arg);
	}
}

static void route_rescued(struct broker *b, struct receiver *from, const struct ftb_event *e,
			  const uint8_t *bytes, size_t len, double arrived)
{
	for (size_t i = 0; i < b->receivers; i++)
		if (b->receiver[i] != from && wants(b->receiver[i], e, arrived, true))
			receiver_put(b, b->receiver[i], e, bytes, len);
	give_owner(b, e, arrived);
}

void route_event(struct broker *b, struct receiver *from, const struct ftb_event *e,
		 const uint8_t *bytes, size_t len)
{
	bool rescued = e->age_ms != 0, link = from && from->kind == RECEIVER_LINK;
	double arrived = 0;
	struct route *t;

	if (rescued || !ftb_event_info(e))
		arrived = clock_seconds() - e->age_ms * 1e-3;
	if (link)
		b->stats.received++;
	else
		b->stats.events++;
	if (!first_time(b, e, arrived)) {
		b->stats.duplicates++;
		return;
	}
	if (!ftb_event_info(e))
		log_add(&b->log, e, bytes, len, arrived);
	if (rescued) {
		route_rescued(b, from, e, bytes, len, arrived);
		return;
	}
	if (b->tree && ftb_event_info(e))
		tree_hold(b->tree, bytes, len);
	t = route_of(b, e, bytes);
	if (!t)
		return;
	for (size_t i = 0; i < t->count; i++)
		if (!link || t->to[i] != from)
			receiver_put(b, t->to[i], e, bytes, len);
	if (t->owner)
		give_owner(b, e, INFINITY);
}

/* ---- after healing ---- */

static bool among(const struct interest *added, size_t count, const struct ftb_event *e,
		  double arrived)
{
	for (size_t i = 0; i < count; i++)
		if (added[i].since <= arrived && ftb_filter_match(&added[i].filter, e))
			return true;
	return false;
}

static void rescue_one(struct broker *b, struct receiver *r, const struct interest *added,
		       size_t count, const uint8_t *bytes, size_t len, double arrived)
{
	double age = (clock_seconds() - arrived) * 1e3;
	uint8_t copy[EVENT_MAX];
	struct ftb_event e;

	if (ftb_event_parse(bytes, len, &e) != len || !among(added, count, &e, arrived))
		return;
	memcpy(copy, bytes, len);
	/* 0 means: not rescued */
	ftb_event_set_age(copy, age < 1 ? 1 : age > 4e9 ? 4000000000u : (uint32_t)age);
	receiver_put(b, r, &e, copy, len);
}

/* The log and what is held, as they came: a publisher's INFO behind its later WARNING would be
 * taken for a duplicate. */
void route_rescue(struct broker *b, struct receiver *r, const struct interest *added, size_t count,
		  const struct out_list *held)
{
	const struct out_node *h = held ? held->head : NULL;
	size_t i = 0;

	while (h || i < b->log.count) {
		const struct log_entry *le = &b->log.entry[(b->log.first + i) % LOG_ENTRIES];
		double at = h ? (double)h->ticket * 1e-9 : 0;

		if (i < b->log.count && (!h || le->arrived <= at)) {
			rescue_one(b, r, added, count, le->bytes, le->len, le->arrived);
			i++;
		} else {
			rescue_one(b, r, added, count, h->bytes, h->len, at);
			h = h->next;
		}
	}
}

/* Adds one to a list in which none covers another; the older age wins. */
static size_t merge(struct interest *out, size_t n, const struct interest *in)
{
	for (size_t i = 0; i < n; i++) {
		if (ftb_filter_covers(&out[i].filter, &in->filter)) {
			if (in->since < out[i].since)
				out[i].since = in->since;
			return n;
		}
	}
	struct interest add = *in;
	for (size_t i = 0; i < n; i++) {
		if (ftb_filter_covers(&in->filter, &out[i].filter)) {
			if (out[i].since < add.since)
				add.since = out[i].since;
			out[i--] = out[--n];
		}
	}
	if (n == INTEREST_MAX) { /* then everything: wider than asked, never narrower */
		memset(&add.filter, 0, sizeof(add.filter));
		add.filter.severities = (1 << FTB_SEVERITIES) - 1;
		for (size_t i = 0; i < n; i++)
			if (out[i].since < add.since)
				add.since = out[i].since;
		n = 0;
	}
	out[n] = add;
	return n + 1;
}

size_t route_interest(const struct broker *b, const struct receiver *except, struct interest *out)
{
	size_t n = 0;

	for (size_t i = 0; i < b->receivers; i++)
		if (b->receiver[i] != except)
			for (size_t k = 0; k < b->receiver[i]->count; k++)
				n = merge(out, n, &b->receiver[i]->want[k]);
	for (size_t i = 0; i < b->owned_count; i++) {
		struct interest own = {.filter = b->owned[i].filter, .since = b->owned[i].since};
		n = merge(out, n, &own);
	}
	return n;
}
