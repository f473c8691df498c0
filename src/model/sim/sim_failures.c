/* SPDX-License-Identifier: BSD-3-Clause */
/* What people say in --failures, and failure traces. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "model/quantity.h"
#include "model/sim/sim.h"

static hale_status_t no_failures(const char *text, struct error *err)
{
	return error_set(err, HALE_ERR_ARGUMENT,
			 "failures '%s' are not understood; say exp:mttf=50y, "
			 "weibull:shape=0.7,mttf=50y or trace:FILE",
			 text);
}

static hale_status_t set_failure_key(struct sim_failures *f, bool weibull, const char *name,
				     const char *value, struct error *err)
{
	double *to = NULL;
	enum model_kind kind = MODEL_TIME_S;

	if (f->traced) {
		if (strcmp(name, "start") != 0 ||
		    (strcmp(value, "random") != 0 && strcmp(value, "begin") != 0))
			return error_set(err, HALE_ERR_ARGUMENT,
					 "a trace takes start=random or start=begin, not %s=%s",
					 name, value);
		f->random_start = value[0] == 'r';
		return HALE_OK;
	}
	if (!strcmp(name, "mttf") || !strcmp(name, "mtbf"))
		to = &f->law.mean_s;
	else if (!strcmp(name, "age"))
		to = &f->age_s;
	else if (!strcmp(name, "soft")) {
		to = &f->soft;
		kind = MODEL_FRACTION;
	} else if (!strcmp(name, "shape") && weibull) {
		to = &f->law.shape;
		kind = MODEL_NUMBER;
	}
	if (!to)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "failures have no setting '%s'; they have mttf, age, soft%s", name,
				 weibull ? " and shape" : "");
	hale_status_t status = model_quantity_parse(value, kind, to, err);
	if (status == HALE_OK && to == &f->soft && f->soft > 1)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "soft=%s is no share of the failures: it is from 0 to 100%%",
				 value);
	if (status == HALE_OK && to == &f->age_s && !isfinite(f->age_s))
		return error_set(err, HALE_ERR_ARGUMENT, "nodes are of some finite age");
	return status;
}

hale_status_t sim_failures_parse(const char *text, struct sim_failures *failures, char **file,
				 struct error *err)
{
	struct sim_failures f = {.law = {.mean_s = 0, .shape = 1}};
	char copy[512], *rest = NULL;
	hale_status_t status = HALE_OK;

	*file = NULL;
	if (strlen(text) >= sizeof(copy))
		return error_set(err, HALE_ERR_ARGUMENT, "the failures are too long to read");
	memcpy(copy, text, strlen(text) + 1);
	char *settings = strchr(copy, ':');
	if (!settings)
		return no_failures(text, err);
	*settings++ = '\0';
	bool weibull = !strcmp(copy, "weibull");
	f.traced = !strcmp(copy, "trace");
	if (!weibull && !f.traced && strcmp(copy, "exp") != 0)
		return no_failures(text, err);
	char *pair = strtok_r(settings, ",", &rest), *path = NULL;
	if (f.traced) {
		path = pair;
		pair = strtok_r(NULL, ",", &rest);
	}
	for (; pair && status == HALE_OK; pair = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(pair, '=');
		if (!value)
			return no_failures(text, err);
		*value++ = '\0';
		status = set_failure_key(&f, weibull, pair, value, err);
	}
	if (status != HALE_OK)
		return status;
	if (!f.traced) {
		if (f.law.mean_s <= 0)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "failures need the mean time of a node to its failure, "
					 "mttf=50y for instance");
		status = model_law_check(&f.law, err);
		if (status != HALE_OK)
			return status;
	} else if (!path || !(*file = strdup(path))) {
		return error_set(err, HALE_ERR_ARGUMENT, "say which file: trace:FILE");
	}
	*failures = f;
	return HALE_OK;
}

/* ---- traces ---- */

static int earlier(const void *a, const void *b)
{
	const struct sim_trace_event *x = a, *y = b;

	return x->time_s < y->time_s ? -1 : x->time_s > y->time_s;
}

/* Of the log of a machine: a bare number is of seconds. */
static hale_status_t trace_time(const char *word, double *seconds, struct error *err)
{
	return model_quantity_parse(word, MODEL_NUMBER, seconds, NULL) == HALE_OK
		   ? HALE_OK
		   : model_quantity_parse(word, MODEL_TIME_S, seconds, err);
}

/* One line, NUL-terminated; *is_event tells whether it was a failure. */
static hale_status_t parse_line(char *line, struct sim_trace *t, struct sim_trace_event *event,
				bool *is_event, struct error *err)
{
	char *rest = NULL, *word = strtok_r(line, " \t\r", &rest);
	double node;

	*is_event = false;
	if (!word || word[0] == '#')
		return HALE_OK;
	if (!strcmp(word, "span")) {
		word = strtok_r(NULL, " \t\r", &rest);
		return trace_time(word ? word : "", &t->span_s, err);
	}
	if (trace_time(word, &event->time_s, err) != HALE_OK)
		return HALE_ERR_ARGUMENT;
	word = strtok_r(NULL, " \t\r", &rest);
	if (model_quantity_parse(word ? word : "", MODEL_COUNT, &node, err) != HALE_OK)
		return HALE_ERR_ARGUMENT;
	if (node > UINT32_MAX)
		return error_set(err, HALE_ERR_ARGUMENT, "node %s is too large a number", word);
	word = strtok_r(NULL, " \t\r", &rest);
	if (word && word[0] != '#' && strcmp(word, "hard") != 0 && strcmp(word, "soft") != 0)
		return error_set(err, HALE_ERR_ARGUMENT, "a failure is hard or soft, not '%s'",
				 word);
	event->node = (uint32_t)node;
	event->soft = word && !strcmp(word, "soft");
	*is_event = true;
	return HALE_OK;
}

static bool add(struct sim_trace *t, size_t *cap, struct sim_trace_event event)
{
	if (t->count == *cap) {
		size_t more = *cap ? 2 * *cap : 256;
		struct sim_trace_event *events = realloc(t->events, more * sizeof(*events));
		if (!events)
			return false;
		t->events = events;
		*cap = more;
	}
	t->events[t->count++] = event;
	return true;
}

hale_status_t sim_trace_parse(const char *text, size_t len, struct sim_trace *trace,
			      struct error *err)
{
	struct sim_trace t = {0};
	size_t cap = 0, number = 0;
	struct error why;

	for (const char *at = text; at < text + len; number++) {
		const char *end = memchr(at, '\n', (size_t)(text + len - at));
		size_t length = (size_t)((end ? end : text + len) - at);
		char line[256];
		struct sim_trace_event event = {0};
		bool is_event;

		if (length >= sizeof(line)) {
			error_set(&why, HALE_ERR_ARGUMENT, "the line is too long");
			goto bad;
		}
		memcpy(line, at, length);
		line[length] = '\0';
		at += length + 1;
		if (parse_line(line, &t, &event, &is_event, &why) != HALE_OK)
			goto bad;
		if (is_event && !add(&t, &cap, event)) {
			sim_trace_fini(&t);
			return error_set(err, HALE_ERR_MEMORY, "no memory for the trace");
		}
	}
	if (t.count == 0) {
		sim_trace_fini(&t);
		return error_set(err, HALE_ERR_ARGUMENT,
				 "there is no failure in the trace; a line is 'TIME NODE' or "
				 "'TIME NODE soft'");
	}
	qsort(t.events, t.count, sizeof(*t.events), earlier);
	t.span_s = fmax(t.span_s, t.events[t.count - 1].time_s);
	*trace = t;
	return HALE_OK;
bad:
	sim_trace_fini(&t);
	return error_set(err, HALE_ERR_ARGUMENT, "line %zu of the trace: %s", number + 1, why.text);
}

void sim_trace_fini(struct sim_trace *trace)
{
	free(trace->events);
	*trace = (struct sim_trace){0};
}
