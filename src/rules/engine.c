/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes, events and time; see engine.h for the way from there to actions. */
#include <arpa/inet.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/address.h"
#include "base/base.h"
#include "base/spaces.h"
#include "rules/engine.h"

struct rules_engine *rules_engine_create(const struct rules *rules, rules_emit_fn *emit, void *arg)
{
	struct rules_engine *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	*e = (struct rules_engine){.rules = rules,
				   .emit = emit,
				   .arg = arg,
				   .now = -INFINITY,
				   .next = INFINITY,
				   .event = ""};
	e->wide = calloc(rules->count + 1, sizeof(*e->wide));
	if (!e->wide) {
		free(e);
		return NULL;
	}
	for (size_t i = 0; i < rules->count; i++)
		e->wide[i].fired_at = -INFINITY;
	return e;
}

static void node_destroy(const struct rules_engine *e, struct rules_node *n)
{
	for (size_t i = 0; n->cells && i < e->rules->count; i++)
		free(n->cells[i].stamps);
	free(n->cells);
	free(n);
}

void rules_engine_destroy(struct rules_engine *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->count; i++)
		node_destroy(e, e->nodes[i]);
	free(e->nodes);
	free(e->wide);
	free(e);
}

/* ---- nodes ---- */

/* Where name, of len bytes, stands or would stand. */
static size_t node_place(const struct rules_engine *e, const char *name, size_t len, bool *found)
{
	size_t low = 0, high = e->count;

	*found = false;
	while (low < high) {
		size_t mid = (low + high) / 2;
		const char *other = e->nodes[mid]->name;
		int c = strncmp(other, name, len);

		if (c == 0 && other[len])
			c = 1;
		if (c == 0) {
			*found = true;
			return mid;
		}
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct rules_node *node_find(const struct rules_engine *e, const char *name, size_t len)
{
	bool found;
	size_t at;

	if (len == 0 || len >= RULES_NODE_MAX)
		return NULL;
	at = node_place(e, name, len, &found);
	return found ? e->nodes[at] : NULL;
}

static struct rules_node *node_create(struct rules_engine *e, const char *name, size_t at)
{
	struct rules_node *n = calloc(1, sizeof(*n));

	if (e->count == e->cap) {
		size_t cap = e->cap ? e->cap * 2 : 16;
		struct rules_node **v = realloc(e->nodes, cap * sizeof(*v));
		if (v) {
			e->nodes = v;
			e->cap = cap;
		}
	}
	if (n)
		n->cells = calloc(e->rules->count + 1, sizeof(*n->cells));
	if (!n || !n->cells || e->count == e->cap) {
		if (n)
			free(n->cells);
		free(n);
		return NULL;
	}
	memcpy(n->name, name, strlen(name) + 1);
	for (size_t i = 0; i < e->rules->count; i++)
		n->cells[i].stand.fired_at = -INFINITY;
	memmove(&e->nodes[at + 1], &e->nodes[at], (e->count - at) * sizeof(*e->nodes));
	e->nodes[at] = n;
	e->count++;
	return n;
}

/* What a rule had done about a node without ranks is still to be done once it has some. */
static void node_gets_ranks(struct rules_engine *e, struct rules_node *n)
{
	for (size_t i = 0; i < e->rules->count; i++) {
		const struct rule *r = &e->rules->v[i];
		struct stand *s = &n->cells[i].stand;

		for (int k = 0; s->holds && s->fired && k < r->step_count; k++)
			if (rules_do_needs_spare(r->steps[k].what))
				s->pending |= 1u << k;
	}
}

hale_status_t rules_engine_node(struct rules_engine *e, const char *name, rules_role_t role,
				double now)
{
	size_t len = strlen(name);
	bool found;
	size_t at;
	struct rules_node *n;

	if (len == 0 || len >= RULES_NODE_MAX)
		return HALE_ERR_ARGUMENT;
	at = node_place(e, name, len, &found);
	if (role == RULES_NODE_GONE) {
		if (!found)
			return HALE_OK;
		node_destroy(e, e->nodes[at]);
		e->count--;
		memmove(&e->nodes[at], &e->nodes[at + 1], (e->count - at) * sizeof(*e->nodes));
	} else {
		n = found ? e->nodes[at] : node_create(e, name, at);
		if (!n)
			return HALE_ERR_MEMORY;
		if (role == RULES_NODE_WORKING && n->role != RULES_NODE_WORKING)
			node_gets_ranks(e, n);
		n->role = role;
	}
	e->dirty = true;
	rules_engine_tick(e, now);
	return HALE_OK;
}

void rules_engine_slots(struct rules_engine *e, const char *node, unsigned ranks, unsigned slots)
{
	struct rules_node *n = node_find(e, node, strlen(node));

	if (!n)
		return;
	e->dirty = e->dirty || n->ranks != ranks || n->slots != slots;
	n->ranks = ranks;
	n->slots = slots;
}

hale_status_t rules_engine_host(struct rules_engine *e, const char *node, const char *host)
{
	struct rules_node *n = node_find(e, node, strlen(node));

	if (!n || strlen(host) >= sizeof(n->host))
		return HALE_ERR_ARGUMENT;
	memcpy(n->host, host, strlen(host) + 1);
	return HALE_OK;
}

bool rules_engine_usable(const struct rules_engine *e, const char *node)
{
	const struct rules_node *n = node_find(e, node, strlen(node));

	return n && node_usable(e, n);
}

/* ---- windows ---- */

static void cell_clear(struct cell *c)
{
	c->used = 0;
}

/* Whether rule.count stamps lie in the window that ends now: the oldest one kept says it. */
static bool cell_full(const struct rules_engine *e, const struct rule *r, const struct cell *c)
{
	return c->stamps && c->used == r->count && c->stamps[c->head] >= e->now - r->within;
}

static void cell_stamp(const struct rules_engine *e, const struct rule *r, struct cell *c,
		       long times)
{
	if (!c->stamps)
		c->stamps = calloc((size_t)r->count, sizeof(*c->stamps));
	if (!c->stamps)
		return;
	for (long i = 0; i < times && i < r->count; i++) {
		c->stamps[c->head] = e->now;
		c->head = (c->head + 1) % r->count;
		c->used += c->used < r->count;
	}
}

/* The event happened so many times; whether that makes rule.count within the window. */
static bool cell_count(const struct rules_engine *e, const struct rule *r, struct cell *c,
		       long times)
{
	if (r->within <= 0)
		return true;
	cell_stamp(e, r, c, times);
	return cell_full(e, r, c);
}

/* ---- rules about several nodes ---- */

static bool wide_satisfied(const struct rules_engine *e, size_t rule)
{
	const struct rule *r = &e->rules->v[rule];
	size_t nodes = 0, active = 0, need;

	for (size_t i = 0; i < e->count; i++) {
		const struct cell *c = &e->nodes[i]->cells[rule];

		if (e->nodes[i]->role == RULES_NODE_OFF || !rules_glob(r->node, e->nodes[i]->name))
			continue;
		nodes++;
		active += rule_latches(r) ? c->active : cell_full(e, r, c);
	}
	need = r->scope == SCOPE_COUNT ? (size_t)r->need : (nodes * (size_t)r->need + 99) / 100;
	return nodes > 0 && need > 0 && active >= need;
}

static void wide_update(struct rules_engine *e, size_t rule)
{
	const struct rule *r = &e->rules->v[rule];
	struct stand *s = &e->wide[rule];

	if (!wide_satisfied(e, rule)) {
		stand_fall(e, r, s);
		return;
	}
	if (rule_latches(r)) {
		stand_rise(e, s);
		return;
	}
	if (e->now < s->fired_at + r->once)
		return;
	stand_rise(e, s);
	for (size_t i = 0; i < e->count; i++) /* the next time needs new events */
		cell_clear(&e->nodes[i]->cells[rule]);
}

/* ---- events ---- */

static bool names_match(const struct rules_names *names, const char *name)
{
	for (int i = 0; i < names->count; i++)
		if (rules_glob(names->glob[i], name))
			return true;
	return false;
}

/* The value of KEY in "KEY:value::KEY:value", or NULL. */
static const char *payload_field(const char *payload, const char *key, size_t *len)
{
	size_t k = strlen(key);

	while (payload) {
		const char *end = strstr(payload, "::");
		if (strncmp(payload, key, k) == 0 && payload[k] == ':') {
			payload += k + 1;
			*len = end && end >= payload ? (size_t)(end - payload) : strlen(payload);
			return payload;
		}
		payload = end ? end + 2 : NULL;
	}
	return NULL;
}

/* Whom an event concerns: one node, or all of a machine. */
struct subject {
	struct rules_node *node;
	const char *host; /* if there is no such node */
	size_t len;
};

static bool on_host(const struct rules_node *n, const struct subject *s)
{
	return strncmp(n->host, s->host, s->len) == 0 && !n->host[s->len];
}

static bool subject_is(const struct rules_engine *e, const char *name, size_t len,
		       struct subject *s)
{
	*s = (struct subject){.node = node_find(e, name, len), .host = name, .len = len};
	if (s->node || len == 0)
		return s->node;
	for (size_t i = 0; i < e->count; i++)
		if (on_host(e->nodes[i], s))
			return true;
	return false;
}

/* Whether a payload is one word that can be a node's name, and so is no text, number or list of
 * fields about the publisher's host. */
static bool names_a_node(const char *payload)
{
	static const char of_names[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_.";
	char address[INET6_ADDRSTRLEN] = "", *end;
	unsigned char bytes[16];
	size_t bare = strcspn(payload, "%");

	if (bare < sizeof(address))
		memcpy(address, payload, bare);
	if (inet_pton(AF_INET6, address, bytes) == 1)
		return true;
	strtod(payload, &end);
	return *end && !payload[strspn(payload, of_names)];
}

/* A host may say its name with its domain where the job doesn't, or the other way round. */
static bool subject_of_host(const struct rules_engine *e, const char *host, size_t len,
			    struct subject *s)
{
	const char *dot = memchr(host, '.', len);
	char whole[ADDRESS_MAX];

	if (subject_is(e, host, len, s))
		return true;
	/* nodes that are addresses of IPv6 are named by all of them */
	s->node = node_find(e, whole, strlen(address_whole(whole, host, len)));
	return s->node || (dot && subject_is(e, host, (size_t)(dot - host), s));
}

static bool subject_of_event(const struct rules_engine *e, const struct rules_event *event,
			     struct subject *s)
{
	size_t len = strlen(event->payload);
	const char *field;

	if (subject_of_host(e, event->payload, len, s))
		return true;
	field = payload_field(event->payload, "NODE", &len);
	if (field)
		return subject_of_host(e, field, len, s);
	/* what is said of a node that the job does not have is not about who says it */
	return !names_a_node(event->payload) &&
	       subject_of_host(e, event->host, strlen(event->host), s);
}

/* The next node that the event concerns; *at is 0 at first. NULL: no more. */
static struct rules_node *subject_next(const struct rules_engine *e, const struct subject *s,
				       size_t *at)
{
	if (s->node)
		return (*at)++ == 0 ? s->node : NULL;
	while (*at < e->count)
		if (on_host(e->nodes[(*at)++], s))
			return e->nodes[*at - 1];
	return NULL;
}

static long times_of_event(const struct rules_event *event)
{
	size_t len;
	const char *field = payload_field(event->payload, "COUNT", &len);
	long n = field ? strtol(field, NULL, 10) : 1;

	return n < 1 ? 1 : n > RULES_COUNT_MAX ? RULES_COUNT_MAX : n;
}

static void cell_over(struct rules_engine *e, size_t rule, struct rules_node *n)
{
	struct cell *c = &n->cells[rule];

	c->active = false;
	cell_clear(c);
	stand_fall(e, &e->rules->v[rule], &c->stand);
}

static void cell_event(struct rules_engine *e, size_t rule, struct rules_node *n,
		       const struct rules_event *event)
{
	const struct rule *r = &e->rules->v[rule];
	struct cell *c = &n->cells[rule];

	if (event->severity < r->severity ||
	    (r->payload && !rules_glob(r->payload, event->payload)))
		return;
	if (!cell_count(e, r, c, times_of_event(event)))
		return;
	c->active = rule_latches(r);
	if (r->scope != SCOPE_EACH)
		return;
	if (!rule_latches(r)) {
		if (e->now < c->stand.fired_at + r->once)
			return;
		cell_clear(c);
	}
	stand_rise(e, &c->stand);
}

static bool space_match(const char *pattern, const char *space)
{
	const char *other;

	if (rules_glob(pattern, space))
		return true;
	other = spaces_other(space, strlen(space));
	return other && rules_glob(pattern, other);
}

/* True when the event is one of this rule's. */
static bool rule_event(struct rules_engine *e, size_t rule, struct rules_node *n,
		       const struct rules_event *event)
{
	const struct rule *r = &e->rules->v[rule];
	bool over = names_match(&r->until, event->name),
	     begins = names_match(&r->when, event->name);

	if ((!over && !begins) || !space_match(r->space, event->space) ||
	    !rules_glob(r->node, n->name))
		return false;
	if (over)
		cell_over(e, rule, n);
	if (begins)
		cell_event(e, rule, n, event);
	return true;
}

static void clock_forward(struct rules_engine *e, double now)
{
	if (now > e->now) /* false for NaN too */
		e->now = now;
}

/* Everybody's turn, until nobody's actions make others possible. Each round needs a new mark or a
 * fallen rule, so it ends. */
static void advance_all(struct rules_engine *e)
{
	do {
		e->dirty = false;
		e->next = INFINITY;
		for (size_t k = 0; k < e->rules->count; k++) {
			if (e->rules->v[k].scope == SCOPE_EACH)
				continue;
			if (rule_latches(&e->rules->v[k]))
				wide_update(e, k);
			stand_advance(e, k, NULL, &e->wide[k]);
		}
		for (size_t i = 0; i < e->count; i++)
			for (size_t k = 0; k < e->rules->count; k++)
				stand_advance(e, k, e->nodes[i], &e->nodes[i]->cells[k].stand);
	} while (e->dirty);
}

void rules_engine_event(struct rules_engine *e, const struct rules_event *event)
{
	size_t count = e->rules->count;
	struct subject s;
	struct rules_node *n;

	clock_forward(e, event->time);
	if (!subject_of_event(e, event, &s))
		return;
	e->event = event->name;
	/* all conditions first, then rules about several nodes, which may hold others back */
	for (size_t k = 0; k < count; k++) {
		bool its = false;

		for (size_t at = 0; (n = subject_next(e, &s, &at));)
			its |= rule_event(e, k, n, event);
		if (its && e->rules->v[k].scope != SCOPE_EACH)
			wide_update(e, k);
	}
	for (size_t k = 0; k < count; k++)
		if (e->rules->v[k].scope != SCOPE_EACH)
			stand_advance(e, k, NULL, &e->wide[k]);
	for (size_t at = 0; (n = subject_next(e, &s, &at));)
		for (size_t k = 0; k < count; k++)
			stand_advance(e, k, n, &n->cells[k].stand);
	if (e->dirty || e->next <= e->now)
		advance_all(e);
	e->event = "";
}

void rules_engine_tick(struct rules_engine *e, double now)
{
	clock_forward(e, now);
	if (e->dirty || e->next <= e->now)
		advance_all(e);
}

double rules_engine_next(const struct rules_engine *e)
{
	return e->next;
}
