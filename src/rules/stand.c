/* SPDX-License-Identifier: BSD-3-Clause */
/* From "it holds" to actions. */
#include <math.h>
#include <stdio.h>
#include "base/base.h"
#include "rules/engine.h"

enum { RETRY_SECONDS = 30 };

typedef enum outcome { STEP_DONE, STEP_HELD, STEP_NO_SPARE } outcome_t;

void stand_rise(struct rules_engine *e, struct stand *s)
{
	if (s->holds)
		return;
	s->holds = true;
	s->fired = false;
	s->fell_back = false;
	s->pending = 0;
	s->since = e->now;
	s->not_before = -INFINITY;
	snprintf(s->event, sizeof(s->event), "%s", e->event);
}

void stand_fall(struct rules_engine *e, const struct rule *r, struct stand *s)
{
	if (s->holds && rule_latches(r))
		e->dirty = true; /* others may go on, or come here */
	s->holds = false;
	s->fired = false;
	s->pending = 0;
}

static void look_again(struct rules_engine *e, double when)
{
	if (when < e->next)
		e->next = when;
}

/* Whether another rule that holds says that this isn't to be done. */
static bool inhibited(const struct rules_engine *e, size_t rule, const struct rules_node *n,
		      rules_do_t what)
{
	for (size_t k = 0; k < e->rules->count; k++) {
		const struct rule *r = &e->rules->v[k];

		if (k == rule || !(r->instead & 1u << what))
			continue;
		if (r->scope != SCOPE_EACH ? e->wide[k].holds : n && n->cells[k].stand.holds)
			return true;
	}
	return false;
}

bool node_usable(const struct rules_engine *e, const struct rules_node *n)
{
	if (n->unusable)
		return false;
	for (size_t k = 0; k < e->rules->count; k++) {
		const struct rule *r = &e->rules->v[k];

		for (int i = 0; n->cells[k].stand.holds && i < r->step_count; i++)
			if (r->steps[i].what == RULES_MIGRATE)
				return false;
	}
	return true;
}

/* A spare for it and for each that is on its way; or free slots, where spares don't do. */
static bool place_left(const struct rules_engine *e, const struct rules_node *from)
{
	long spares = 0, moving = 0, room = 0, need = from->ranks, theirs = 0;

	for (size_t i = 0; i < e->count; i++) {
		const struct rules_node *n = e->nodes[i];

		if (n->moving) {
			moving++;
			theirs += n->ranks;
		} else if (n != from && node_usable(e, n)) {
			spares += n->role == RULES_NODE_SPARE;
			room += n->role == RULES_NODE_WORKING && n->slots > n->ranks
				    ? (long)n->slots - (long)n->ranks
				    : 0;
		}
	}
	if (spares < moving) /* nobody knows yet who of them gets one */
		need += theirs;
	return spares > moving || (from->ranks > 0 && room >= need);
}

static uint64_t emit(struct rules_engine *e, const struct rule *r, const struct rules_node *n,
		     const struct rules_step *s)
{
	size_t rule = (size_t)(r - e->rules->v);
	const struct stand *stand = n ? &n->cells[rule].stand : &e->wide[rule];
	struct rules_action a = {.what = s->what,
				 .id = ++e->last_id,
				 .time = e->now,
				 .node = n ? n->name : "",
				 .argument = s->argument ? s->argument : "",
				 .amount = s->amount,
				 .rule = r->name,
				 .line = r->line,
				 .event = stand->event};

	e->emit(e->arg, &a);
	return a.id;
}

static outcome_t move(struct rules_engine *e, size_t rule, int step, struct rules_node *n)
{
	const struct rule *r = &e->rules->v[rule];

	if (n->role != RULES_NODE_WORKING || n->moving)
		return STEP_DONE; /* nothing to move, or on its way */
	if (!place_left(e, n))
		return STEP_NO_SPARE;
	n->moving_rule = rule;
	n->moving_step = step;
	n->moving = emit(e, r, n, &r->steps[step]);
	return STEP_DONE;
}

/* A node is marked for as long as there is one reason. */
static void mark(struct rules_engine *e, const struct rule *r, struct rules_node *n,
		 const struct rules_step *s)
{
	unsigned before = n->unusable, bit = 1u << s->reason;

	n->unusable = s->what == RULES_MARK_UNUSABLE ? before | bit : before & ~bit;
	if (!before == !n->unusable)
		return;
	emit(e, r, n, s);
	if (!n->unusable)
		e->dirty = true; /* a spare more */
}

static outcome_t do_step(struct rules_engine *e, size_t rule, struct rules_node *n,
			 const struct rules_step *s, int index)
{
	const struct rule *r = &e->rules->v[rule];

	if (inhibited(e, rule, n, s->what))
		return STEP_HELD;
	if (rules_do_needs_spare(s->what))
		return move(e, rule, index, n);
	if (rules_do_needs_node(s->what))
		mark(e, r, n, s);
	else
		emit(e, r, n, s);
	return STEP_DONE;
}

static void do_pending(struct rules_engine *e, size_t rule, struct rules_node *n, struct stand *s)
{
	const struct rule *r = &e->rules->v[rule];
	bool no_spare = false;

	for (int i = 0; i < r->step_count; i++) {
		if (!(s->pending & 1u << i))
			continue;
		outcome_t o = do_step(e, rule, n, &r->steps[i], i);
		if (o == STEP_DONE)
			s->pending &= ~(1u << i);
		no_spare |= o == STEP_NO_SPARE;
	}
	if (!no_spare || s->fell_back)
		return;
	s->fell_back = true;
	for (int i = 0; i < r->otherwise_count; i++)
		do_step(e, rule, n, &r->otherwise[i], i);
}

/* When the stand is next to fire; infinity when it has, and once is enough. */
static double due(const struct rule *r, const struct stand *s)
{
	double at = !s->fired	   ? s->since + r->hold
		    : r->every > 0 ? s->fired_at + r->every
				   : INFINITY;

	return at < s->fired_at + r->once ? s->fired_at + r->once : at;
}

void stand_advance(struct rules_engine *e, size_t rule, struct rules_node *n, struct stand *s)
{
	const struct rule *r = &e->rules->v[rule];

	if (!s->holds)
		return;
	if (due(r, s) <= e->now) {
		s->fired = true;
		s->fell_back = false;
		s->fired_at = e->now;
		s->pending = (1u << r->step_count) - 1;
	}
	if (s->pending && s->not_before <= e->now)
		do_pending(e, rule, n, s);
	if (!rule_latches(r)) {
		stand_fall(e, r, s); /* a moment only; what could not be done is over */
		return;
	}
	look_again(e, due(r, s));
	if (s->pending && s->not_before > e->now)
		look_again(e, s->not_before);
}

bool rules_engine_wanted(const struct rules_engine *e, uint64_t id)
{
	const struct rules_node *n = NULL;
	bool wanted = false;

	for (size_t i = 0; i < e->count && !n; i++)
		n = e->nodes[i]->moving == id ? e->nodes[i] : NULL;
	if (!n || id == 0)
		return true;
	/* what holds for a moment only is not over by itself */
	if (!rule_latches(&e->rules->v[n->moving_rule]))
		return !inhibited(e, n->moving_rule, n, RULES_MIGRATE);
	for (size_t k = 0; k < e->rules->count && !wanted; k++) {
		const struct rule *r = &e->rules->v[k];

		for (int i = 0; n->cells[k].stand.holds && i < r->step_count; i++)
			wanted |= rules_do_needs_spare(r->steps[i].what) &&
				  !inhibited(e, k, n, r->steps[i].what);
	}
	return wanted;
}

void rules_engine_done(struct rules_engine *e, uint64_t id, bool ok, double now)
{
	for (size_t i = 0; id && i < e->count; i++) {
		struct rules_node *n = e->nodes[i];

		if (n->moving != id)
			continue;
		struct stand *s = &n->cells[n->moving_rule].stand;
		n->moving = 0;
		if (!ok && s->holds) {
			s->pending |= 1u << n->moving_step;
			s->not_before = (now > e->now ? now : e->now) + RETRY_SECONDS;
		}
		e->dirty = true;
		break;
	}
	rules_engine_tick(e, now);
}
