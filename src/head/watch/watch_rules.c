/* SPDX-License-Identifier: BSD-3-Clause */
/* Events to the engine, its decisions to what can be done about them.
 *
 * The engine is called from wherever an event is published, also by the head in the middle of a
 * rollback. So decisions are only noted there, and carried out from the loop. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "ftb/ftb.h"
#include "head/watch/watch_private.h"

/* ---- nodes ---- */

static rules_role_t role_of(node_state_t state, uint32_t ranks)
{
	return state == NODE_LOST ? RULES_NODE_GONE
	       : ranks > 0	  ? RULES_NODE_WORKING
				  : RULES_NODE_SPARE;
}

/* Nodes of one machine hear of what happens to it. */
static void node_changed(struct watch *w, struct node *node, struct watch_node *n)
{
	struct head *h = w->head;
	const char *host = node->local ? h->id.node : node->host;

	/* before others might be sent there; one that is new is known only then */
	rules_engine_slots(w->engine, node->name, n->ranks, node->slots);
	rules_engine_node(w->engine, node->name, role_of(n->state, n->ranks), clock_seconds());
	rules_engine_slots(w->engine, node->name, n->ranks, node->slots);
	if (strcmp(node->name, host) != 0)
		rules_engine_host(w->engine, node->name, host);
	if (n->state == NODE_LOST)
		watch_tell(h, "FTB.NLA", "FTB_NODE_LOST", FTB_ERROR, "JOB:%s::NODE:%s::REASON:%s",
			   h->id.job, node->name, h->lost.why);
	else
		watch_tell(h, "FTB.NLA", "FTB_NODE_STATE", FTB_INFO,
			   "JOB:%s::NODE:%s::STATE:%s::RANKS:%u", h->id.job, node->name, n->shown,
			   n->ranks);
}

void watch_node(struct head *h, uint32_t node)
{
	struct watch *w = h->watch;

	if (!w || node >= w->node_count)
		return;
	struct watch_node *n = &w->nodes[node];
	struct node *about = &h->node_set.nodes[node];
	uint32_t ranks = node_set_ranks_on(&h->node_set, about);
	const char *shown = head_node_state(h, about);

	if (n->known && n->shown == shown && n->ranks == ranks)
		return;
	n->known = true;
	n->shown = shown;
	n->state = about->state;
	n->ranks = ranks;
	node_changed(w, about, n);
}

void watch_nodes(struct head *h)
{
	for (uint32_t k = 0; h->watch && k < h->watch->node_count; k++)
		watch_node(h, k);
}

void watch_mark(struct head *h, uint32_t node, bool unusable, const char *why)
{
	struct node *n = &h->node_set.nodes[node];
	struct watch *w = h->watch;

	n->unusable = unusable;
	if (!w || node >= w->node_count)
		return;
	snprintf(w->nodes[node].why, sizeof(w->nodes[node].why), "%s", why);
	watch_tell(h, "FTB.NLA", unusable ? "FTB_NODE_UNUSABLE" : "FTB_NODE_USABLE",
		   unusable ? FTB_WARNING : FTB_INFO, "JOB:%s::NODE:%s::RULE:%s", h->id.job,
		   n->name, why);
}

static void mark(struct watch *w, const struct watch_action *a, bool unusable)
{
	struct node_set *c = &w->head->node_set;
	uint32_t k = 0;

	while (k < w->node_count && strcmp(c->nodes[k].name, a->node) != 0)
		k++;
	if (k == w->node_count || c->nodes[k].unusable == unusable)
		return;
	head_say(w->head, "node %s is %s from now on (%s)", a->node,
		 unusable ? "unusable" : "usable again", a->event);
	watch_mark(w->head, k, unusable, a->rule);
}

/* ---- carrying out ---- */

static void tick_set(struct watch *w);

static void action_free(struct watch_action *a)
{
	free(a->node);
	free(a->argument);
	free(a->rule);
	free(a->event);
	free(a->payload);
	free(a);
}

static void take_checkpoint(struct watch *w, const struct watch_action *a)
{
	struct error err;

	head_say(w->head, "%s%s%s: a checkpoint is taken", a->event, *a->node ? " of node " : "",
		 a->node);
	if (head_request_checkpoint(w->head, ORIGIN_RULE, &err) != HALE_OK)
		head_say(w->head, "no checkpoint: %s", err.text);
}

/* A migration that fails is tried again by the engine. */
static void leave(struct watch *w, const struct watch_action *a)
{
	struct node_set *c = &w->head->node_set;
	struct error err;

	for (uint32_t k = 0; k < w->node_count; k++)
		if (strcmp(c->nodes[k].name, a->node) == 0)
			w->nodes[k].migration = a->id;
	if (a->what == RULES_CLONE)
		error_set(&err, HALE_ERR_UNSUPPORTED,
			  "%s: a rule wants replicas of the ranks of node %s, which this version "
			  "can't add to a job that runs",
			  a->event, a->node);
	else if (head_leave_node(w->head, a->node, a->event, &err) == HALE_OK)
		return;
	head_say(w->head, "%s", err.text);
	/* what can't be will not be in half a minute either */
	watch_left(w->head, a->node, err.code == HALE_ERR_UNSUPPORTED);
}

bool watch_wants_left(const struct head *h, uint32_t node)
{
	const struct watch *w = h->watch;

	return !w || node >= w->node_count || w->nodes[node].migration == 0 ||
	       rules_engine_wanted(w->engine, w->nodes[node].migration);
}

void watch_left(struct head *h, const char *node, bool ok)
{
	struct watch *w = h->watch;

	for (uint32_t k = 0; w && k < w->node_count; k++) {
		uint64_t id = w->nodes[k].migration;

		if (id == 0 || strcmp(h->node_set.nodes[k].name, node) != 0)
			continue;
		w->nodes[k].migration = 0;
		rules_engine_done(w->engine, id, ok, clock_seconds());
		tick_set(w);
	}
}

/* What is told: one line of JSON. */
static char *describe(const struct watch *w, const struct watch_action *a)
{
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "job", w->head->id.job);
	json_string(&j, "rule", a->rule);
	json_string(&j, "event", a->event);
	json_string(&j, "node", a->node);
	json_string(&j, "payload", a->payload);
	json_close_object(&j);
	return j.text;
}

/* NAME="VALUE" in curl's language of options. */
static void put_option(FILE *f, const char *name, const char *value)
{
	fprintf(f, "%s=\"", name);
	for (; *value; value++)
		if (*value == '\n')
			fputs("\\n", f);
		else
			fprintf(f, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
	fputs("\"\n", f);
}

/* An address often is as good as a password: it does not stand on curl's command line. */
static char *curl_options(const char *address, const char *text)
{
	size_t len;
	char *options = NULL;
	FILE *f = open_memstream(&options, &len);

	if (!f)
		return NULL;
	put_option(f, "header", "Content-Type: application/json");
	put_option(f, "data-binary", text);
	put_option(f, "url", address);
	if (fclose(f) == 0)
		return options;
	free(options);
	return NULL;
}

enum { TOLD = 5 };

struct told {
	char *text[TOLD];
	char **env; /* ours, and these */
};

static void told_fini(struct told *t)
{
	for (int i = 0; i < TOLD; i++)
		free(t->text[i]);
	free(t->env);
}

static bool told_init(struct told *t, const struct watch *w, const struct watch_action *a)
{
	const char *const about[TOLD][2] = {{"HALE_JOB", w->head->id.job},
					    {"HALE_RULE", a->rule},
					    {"HALE_EVENT", a->event},
					    {"HALE_NODE", a->node},
					    {"HALE_PAYLOAD", a->payload}};
	size_t n = 0, count = 0;

	*t = (struct told){.env = NULL};
	while (environ[n])
		n++;
	t->env = calloc(n + TOLD + 1, sizeof(*t->env));
	for (int i = 0; t->env && i < TOLD; i++) {
		if (asprintf(&t->text[i], "%s=%s", about[i][0], about[i][1]) < 0) {
			t->text[i] = NULL;
			return false;
		}
		t->env[count++] = t->text[i]; /* first: who looks for a name finds these */
	}
	for (size_t i = 0; t->env && i < n; i++) {
		bool ours = false;

		for (int k = 0; k < TOLD; k++)
			ours |= strncmp(environ[i], about[k][0], strlen(about[k][0])) == 0 &&
				environ[i][strlen(about[k][0])] == '=';
		if (!ours)
			t->env[count++] = environ[i];
	}
	return t->env != NULL;
}

static void tell_somebody(struct watch *w, const struct watch_action *a)
{
	char *text = describe(w, a),
	     *options = text && a->what == RULES_WEBHOOK ? curl_options(a->argument, text) : NULL;
	char *command[] = {"env", "sh", "-c", a->argument, NULL},
	     *post[] = {"env", "curl", "-fsS", "-m", "30", "-K", "-", NULL},
	     *mail[] = {"env", "mail", "-s", "hale: an event of a job", "--", a->argument, NULL};
	struct told told;
	struct error err;

	if (!told_init(&told, w, a) || !text || (a->what == RULES_WEBHOOK && !options))
		error_set(&err, HALE_ERR_MEMORY, "out of memory");
	else if (watch_command(w, rules_do_name(a->what),
			       a->what == RULES_RUN	  ? command
			       : a->what == RULES_WEBHOOK ? post
							  : mail,
			       told.env, options ? options : text, &err) == HALE_OK)
		err.text[0] = '\0';
	if (err.text[0])
		head_say(w->head, "the rule's \"%s\" is not done: %s", a->argument, err.text);
	told_fini(&told);
	free(options);
	free(text);
}

static void record(struct watch *w, const struct watch_action *a)
{
	struct json_out j;

	record_begin(&j, "rule");
	json_string(&j, "rule", a->rule);
	json_string(&j, "action", rules_do_name(a->what));
	json_string(&j, "node", a->node);
	json_string(&j, "because", a->event);
	record_end(&w->head->files.record, &j);
	watch_tell(w->head, "FTB.JL", "FTB_RULE", FTB_INFO,
		   "JOB:%s::ACTION:%s%s%s::EVENT:%s::RULE:%s", w->head->id.job,
		   rules_do_name(a->what), *a->node ? "::NODE:" : "", a->node, a->event, a->rule);
}

static void act(struct watch *w, const struct watch_action *a)
{
	if (job_state_over(w->head->state))
		return;
	record(w, a);
	switch (a->what) {
	case RULES_CHECKPOINT:
		take_checkpoint(w, a);
		break;
	case RULES_MIGRATE:
	case RULES_CLONE:
		leave(w, a);
		break;
	case RULES_MARK_UNUSABLE:
	case RULES_MARK_USABLE:
		mark(w, a, a->what == RULES_MARK_UNUSABLE);
		break;
	case RULES_RAISE_REDUNDANCY:
		head_say(w->head,
			 "%s: a rule wants more replicas, which this version can't add to a job "
			 "that runs",
			 a->event);
		break;
	default:
		tell_somebody(w, a);
		break;
	}
}

static void carry_out(void *arg)
{
	struct watch *w = arg;

	while (w->first) {
		struct watch_action *a = w->first;

		w->first = a->next;
		if (!w->first)
			w->last = &w->first;
		w->deferred--;
		act(w, a);
		action_free(a);
	}
	head_review_leaving(w->head);
	tick_set(w);
}

/* ---- the engine ---- */

static void note(void *arg, const struct rules_action *from)
{
	struct watch *w = arg;
	struct watch_action *a = w->deferred < WATCH_DEFERRED_MAX ? calloc(1, sizeof(*a)) : NULL;
	char line[32];

	snprintf(line, sizeof(line), "line %d", from->line);
	if (a)
		*a = (struct watch_action){.what = from->what,
					   .id = from->id,
					   .node = strdup(from->node),
					   .argument = strdup(from->argument),
					   .rule = strdup(*from->rule ? from->rule : line),
					   .event = strdup(*from->event ? from->event : line),
					   .payload = strdup(w->payload ? w->payload : "")};
	if (!a || !a->node || !a->argument || !a->rule || !a->event || !a->payload) {
		if (a)
			action_free(a);
		if (w->actions_dropped++ == 0)
			log_warn("more rules apply at once than can be followed; some are not");
		return;
	}
	*w->last = a;
	w->last = &a->next;
	w->deferred++;
	loop_timer_set(&w->head->loop, &w->carry, 0, carry_out, w);
}

static void ticked(void *arg)
{
	struct watch *w = arg;

	rules_engine_tick(w->engine, clock_seconds());
	tick_set(w);
}

static void tick_set(struct watch *w)
{
	double next = rules_engine_next(w->engine), now = clock_seconds();

	if (isinf(next))
		loop_timer_clear(&w->head->loop, &w->tick);
	else if (!w->tick.armed || fabs(w->tick.at - next) > 1e-3)
		loop_timer_set(&w->head->loop, &w->tick, next > now ? next - now : 0, ticked, w);
}

bool watch_of_another_job(const struct watch *w, const struct broker_event *e)
{
	return *e->jobid && strcmp(e->jobid, watch_job_name(w->head->id.job)) != 0;
}

void watch_rules_event(const struct broker_event *e, void *arg)
{
	struct watch *w = arg;
	char payload[EVENT_PAYLOAD_MAX + 1];
	struct rules_event event = {.time = clock_seconds(),
				    .space = e->space,
				    .name = e->name,
				    .host = e->host,
				    .payload = payload};

	if (w->node_count == 0 || watch_of_another_job(w, e) ||
	    !rules_severity_parse(e->severity, &event.severity))
		return;
	memcpy(payload, e->payload, e->length);
	payload[e->length] = '\0'; /* one with zeros in it names no node */
	w->payload = payload;
	rules_engine_event(w->engine, &event);
	w->payload = NULL;
	if (w->head->moves.wishes)
		loop_timer_set(&w->head->loop, &w->carry, 0, carry_out, w);
	tick_set(w);
}

/* ---- life ---- */

struct subscribing {
	struct watch *w;
	uint32_t count;
	bool all;
	struct error err;
	hale_status_t status;
};

static void want_event(void *arg, const char *space, const char *event)
{
	struct subscribing *s = arg;
	char filter[2 * RULES_WORD_MAX + 32];

	if (s->status != HALE_OK || s->all)
		return;
	/* a pattern that filters don't take, or too many (watch_kept.c has one): everything */
	snprintf(filter, sizeof(filter), "namespace=%s,name=%s", space, event);
	s->all = s->count++ == TAP_SUBSCRIPTIONS - 2 ||
		 watch_subscribe(s->w, filter, watch_rules_event, &s->err) != HALE_OK;
	if (s->all)
		s->status = watch_subscribe(s->w, "", watch_rules_event, &s->err);
}

hale_status_t watch_rules_start(struct watch *w, struct error *err)
{
	const struct options *o = w->head->o;
	struct subscribing s = {.w = w};
	hale_status_t status;

	status = o->rules ? rules_load(o->rules, &w->rules, err) : rules_default(&w->rules, err);
	if (status != HALE_OK)
		return status;
	w->engine = rules_engine_create(w->rules, note, w);
	if (!w->engine)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for rules");
	rules_each_event(w->rules, want_event, &s);
	if (s.status != HALE_OK)
		*err = s.err;
	return s.status;
}

void watch_rules_begin(struct watch *w)
{
	w->nodes = calloc(w->head->node_set.count, sizeof(*w->nodes));
	w->node_count = w->nodes ? w->head->node_set.count : 0;
	watch_nodes(w->head);
}

void watch_rules_stop(struct watch *w)
{
	loop_timer_clear(&w->head->loop, &w->tick);
	loop_timer_clear(&w->head->loop, &w->carry);
	while (w->first) {
		struct watch_action *a = w->first;

		w->first = a->next;
		action_free(a);
	}
	rules_engine_destroy(w->engine);
	rules_destroy(w->rules);
	free(w->nodes);
}
