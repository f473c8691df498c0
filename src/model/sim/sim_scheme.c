/* SPDX-License-Identifier: BSD-3-Clause */
/* What people say in --scheme and --failures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/fmt.h"
#include "model/quantity.h"
#include "model/sim/sim.h"

/* One key of a part. Everything in struct sim_scheme is a double, so a table can fill it. */
struct key {
	const char *part, *name;
	size_t at;
	enum model_kind kind;
	double low, high;
	const char *word; /* may stand in place of a value */
	double word_value;
};

#define AT(member) offsetof(struct sim_scheme, member)
#define ANY	   INFINITY
#define LEVEL(name, k)                                                                             \
	{name, "every", AT(level[k].every_s), MODEL_TIME_S, 1e-3, ANY, "auto", 0},                 \
	    {name, "cost", AT(level[k].cost_s), MODEL_TIME_S, 0, ANY, NULL, 0},                    \
	{                                                                                          \
		name, "restart", AT(level[k].restart_s), MODEL_TIME_S, 0, ANY, NULL, 0             \
	}

static const struct key keys[] = {
    LEVEL("ckpt", POLICY_SHARED),
    LEVEL("L4", POLICY_SHARED),
    LEVEL("L2", POLICY_PARTNER),
    LEVEL("L1", POLICY_LOCAL),
    {"clone", "time", AT(clone_s), MODEL_TIME_S, 0, ANY, NULL, 0},
    {"clone", "pause", AT(clone_pause_s), MODEL_TIME_S, 0, ANY, NULL, 0},
    {"clone", "at-once", AT(at_once), MODEL_COUNT, 1, 1e9, "any", INFINITY},
    {"partial", "fraction", AT(degree), MODEL_FRACTION, 0, 1, NULL, 0},
    {"spares", "count", AT(spares), MODEL_COUNT, 0, 1e9, "any", INFINITY},
    {"spares", "repair", AT(repair_s), MODEL_TIME_S, 1e-3, ANY, "never", INFINITY},
    {"shadow", "set", AT(set_size), MODEL_COUNT, 1, 1e6, NULL, 0},
    {"shadow", "speed", AT(speed), MODEL_FRACTION, 0, 1, NULL, 0},
    {"shadow", "pressure", AT(pressure), MODEL_NUMBER, 1, 4, NULL, 0},
    {"shadow", "jump", AT(jump_s), MODEL_TIME_S, 0, ANY, "none", -1},
    {"shadow", "log", AT(log_bytes), MODEL_BYTES, 1, ANY, "any", INFINITY},
    {"shadow", "rate", AT(log_rate), MODEL_BYTES_PER_S, 0, ANY, NULL, 0},
    {"shadow", "mark", AT(log_mark), MODEL_FRACTION, 1e-3, 1, NULL, 0},
    {"shadow", "rejuvenate", AT(rejuvenate), MODEL_COUNT, 1, 1e9, "never", 0},
    {"shadow", "rejuvenation", AT(rejuvenate_s), MODEL_TIME_S, 0, ANY, NULL, 0},
    {"shadow", "meet", AT(loose), MODEL_NUMBER, 1, 0, "often", 0},
    {"shadow", "meet", AT(loose), MODEL_NUMBER, 1, 0, "end", 1},
    {"shadow", "fail", AT(ideal), MODEL_NUMBER, 1, 0, "yes", 0},
    {"shadow", "fail", AT(ideal), MODEL_NUMBER, 1, 0, "no", 1},
    {"task", "coverage", AT(coverage), MODEL_FRACTION, 0, 1, NULL, 0},
    {"task", "waste", AT(task_waste), MODEL_FRACTION, 0, 0.99, NULL, 0},
    {"task", "rework", AT(rework_s), MODEL_TIME_S, 0, ANY, NULL, 0},
    {"task", "overlap", AT(overlap), MODEL_FRACTION, 0, 1, NULL, 0},
};

static const char part_names[] =
    "none, ckpt (L4), L2, L1, 2x, 3x or 1.5x, partial, clone, spares, shadow, task";

/* Names the keys of a part, or explains that it has none. */
static hale_status_t no_such_key(const char *part, const char *name, struct error *err)
{
	char list[200];
	size_t len = 0;
	const char *last = "";

	list[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!strcmp(keys[i].part, part) && strcmp(keys[i].name, last) &&
		    len < sizeof(list)) {
			last = keys[i].name;
			len += fmt_print(list + len, sizeof(list) - len, "%s%s", len ? ", " : "",
					 last);
		}
	if (!list[0])
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%s' of a scheme takes no '%s', nor any "
				 "other setting",
				 part, name);
	return error_set(err, HALE_ERR_ARGUMENT, "'%s' of a scheme has no setting '%s'; it has %s",
			 part, name, list);
}

static hale_status_t set_key(struct sim_scheme *s, const char *part, const char *name,
			     const char *value, struct error *err)
{
	const struct key *found = NULL;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const struct key *k = &keys[i];
		if (strcmp(k->part, part) != 0 || strcmp(k->name, name) != 0)
			continue;
		found = k;
		double *to = (void *)((char *)s + k->at);
		if (k->word && !strcmp(value, k->word)) {
			*to = k->word_value;
			return HALE_OK;
		}
		if (k->low > k->high) /* words only */
			continue;
		double v;
		hale_status_t status = model_quantity_parse(value, k->kind, &v, err);
		if (status != HALE_OK)
			return status;
		if (!isfinite(v) || v < k->low || v > k->high)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "%s:%s=%s is out of range: from %g to %g", part, name,
					 value, k->low, k->high);
		*to = v;
		return HALE_OK;
	}
	if (found)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "%s:%s=%s is not understood; 'hale help sim' lists what it takes",
				 part, name, value);
	return no_such_key(part, name, err);
}

/* "2x", "1.5x", "3x": replicas per rank. */
static bool parse_degree(const char *name, double *degree)
{
	char *end;
	double v = strtod(name, &end);

	if (name[0] < '1' || name[0] > '9' || strcmp(end, "x") != 0)
		return false;
	*degree = v;
	return true;
}

/* Switches a part on, with its defaults. */
static hale_status_t begin_part(struct sim_scheme *s, bool *degree_said, const char *name,
				struct error *err)
{
	static const struct {
		const char *name;
		enum policy_level level;
		double cost_s;
	} levels[] = {{"ckpt", POLICY_SHARED, 300},
		      {"L4", POLICY_SHARED, 300},
		      {"L2", POLICY_PARTNER, 30},
		      {"L1", POLICY_LOCAL, 10}};

	if (!strcmp(name, "none"))
		return HALE_OK;
	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		if (strcmp(name, levels[i].name) != 0)
			continue;
		struct sim_level *l = &s->level[levels[i].level];
		if (l->used)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "the scheme has '%s' twice (ckpt and L4 are the same)",
					 name);
		*l = (struct sim_level){1, 0, levels[i].cost_s, -1};
		return HALE_OK;
	}
	bool degree = parse_degree(name, &s->degree), partial = !strcmp(name, "partial");
	if (degree || partial) {
		if (*degree_said)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "the scheme says twice how many replicas ranks have");
		if (s->degree < 1 || s->degree > 3)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "%s: a rank has between 1 and 3 replicas", name);
		*degree_said = true;
		if (partial)
			s->degree = 0.5;
		return HALE_OK;
	}
	if (!strcmp(name, "clone"))
		s->cloning = 1;
	else if (!strcmp(name, "shadow"))
		s->shadows = 1;
	else if (!strcmp(name, "task"))
		s->tasks = 1;
	else if (strcmp(name, "spares") != 0)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%s' is no part of a scheme; parts are %s", name, part_names);
	return HALE_OK;
}

static hale_status_t parse_part(struct sim_scheme *s, bool *degree_said, char *part,
				struct error *err)
{
	char *settings = strchr(part, ':'), *rest = NULL;
	hale_status_t status;

	if (settings)
		*settings++ = '\0';
	status = begin_part(s, degree_said, part, err);
	for (char *pair = settings ? strtok_r(settings, ",", &rest) : NULL;
	     pair && status == HALE_OK; pair = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(pair, '=');
		if (!value)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "'%s' in '%s' of the scheme lacks its value, as in "
					 "ckpt:cost=5min,every=auto",
					 pair, part);
		*value++ = '\0';
		status = set_key(s, part, pair, value, err);
	}
	if (status == HALE_OK && !strcmp(part, "partial"))
		s->degree += 1; /* said as the part of ranks that have a twin */
	return status;
}

static const struct sim_scheme defaults = {
    .degree = 1,
    .clone_s = 120,
    .at_once = 1,
    .clone_pause_s = -1, /* as long as the cloning */
    .spares = INFINITY,
    .repair_s = INFINITY,
    .speed = -1, /* what collocation leaves */
    .pressure = 1,
    .log_bytes = INFINITY,
    .log_mark = 0.75,
    .coverage = 0.9,
    .overlap = 1,
};

/* Parts that make no sense together. */
static hale_status_t check_parts(const struct sim_scheme *s, struct error *err)
{
	const char *why = NULL;

	if (s->cloning && s->degree == 1)
		why = "clone needs a healthy replica to clone from: say 2x or 3x, too";
	else if (s->cloning && s->clone_pause_s > s->clone_s)
		why = "clone can't stop the job (pause) for longer than it takes (time)";
	else if (s->shadows && s->degree > 1)
		why = "a rank has either equal replicas (2x, 3x) or a shadow, not both";
	else if (s->shadows && s->set_size > 1 && s->speed >= 0)
		why = "the speed of shadows follows from how many share a core (set); "
		      "say one of the two";
	else if (s->shadows && !s->jump && s->rejuvenate > 0)
		why = "rejuvenation starts shadows from their mains, which is a jump; "
		      "leave jump=none out";
	else if (s->shadows && !s->jump && isfinite(s->log_bytes))
		why = "with jump=none nothing empties a full log; leave one of the two out";
	else if (s->loose && (s->level[0].used || s->level[1].used || s->level[2].used))
		why = "ranks that meet at the end only have no common state to checkpoint";
	else if (s->shadows && s->ideal && s->rejuvenate > 0)
		why = "shadows that don't fail need no rejuvenation";
	return why ? error_set(err, HALE_ERR_ARGUMENT, "%s", why) : HALE_OK;
}

hale_status_t sim_scheme_parse(const char *text, struct sim_scheme *scheme, struct error *err)
{
	struct sim_scheme s = defaults;
	char copy[sizeof(s.text)], *rest = NULL;
	bool degree_said = false;

	if (strlen(text) >= sizeof(copy))
		return error_set(err, HALE_ERR_ARGUMENT, "the scheme is too long");
	memcpy(copy, text, strlen(text) + 1);
	char *part = strtok_r(copy, "+", &rest);
	if (!part)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the scheme is empty; say none, or 2x+clone+ckpt");
	for (; part; part = strtok_r(NULL, "+", &rest)) {
		hale_status_t status = parse_part(&s, &degree_said, part, err);
		if (status != HALE_OK)
			return status;
	}
	if (s.clone_pause_s < 0)
		s.clone_pause_s = s.clone_s;
	for (int k = 0; k < POLICY_LEVELS; k++) /* reading takes as long as writing */
		if (s.level[k].restart_s < 0)
			s.level[k].restart_s = s.level[k].cost_s;
	if (s.set_size == 0)
		s.set_size = s.speed < 0 ? 4 : 1;
	s.jump = s.shadows && s.jump_s >= 0 && !s.loose;
	s.jump_s = fmax(s.jump_s, 0);
	hale_status_t status = check_parts(&s, err);
	if (status != HALE_OK)
		return status;
	memcpy(s.text, text, strlen(text) + 1);
	*scheme = s;
	return HALE_OK;
}
