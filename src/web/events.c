/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/base.h"
#include "base/json.h"
#include "control/follow.h"
#include "node/job.h"
#include "web/events.h"

/* Jobs that are looked at; the one nobody has asked for longest makes room. */
enum { LISTENERS = 8, SHOWN = 100, UNWANTED_S = 60, AGAIN_S = 5 };

static struct listener {
	char job[JOB_ID_MAX];
	double asked_at, begun_at; /* clock_seconds() */
	struct follow events;
} listeners[LISTENERS];

static void stop(struct listener *l)
{
	if (l->job[0])
		follow_end(&l->events);
	l->job[0] = '\0';
}

/* Nobody has looked for a while: closed pages. */
static void stop_unwanted(double now)
{
	for (int i = 0; i < LISTENERS; i++)
		if (listeners[i].job[0] && now - listeners[i].asked_at > UNWANTED_S)
			stop(&listeners[i]);
}

/* A job may not have had its broker yet. */
static bool in_vain(const struct listener *l, double now)
{
	return l->events.ended && l->events.text[0] != '{' && now - l->begun_at > AGAIN_S;
}

static struct listener *listen_to(const char *hale, const char *job, double now)
{
	char *const argv[] = {(char *)hale, (char *)"events", (char *)job, (char *)"--follow",
			      (char *)"--json", NULL};
	struct listener *l = &listeners[0];

	for (int i = 0; i < LISTENERS; i++) {
		if (strcmp(listeners[i].job, job) == 0 && !in_vain(&listeners[i], now))
			return &listeners[i];
		if (strcmp(listeners[i].job, job) == 0) {
			l = &listeners[i];
			break;
		}
		if (!listeners[i].job[0] || (l->job[0] && listeners[i].asked_at < l->asked_at))
			l = &listeners[i];
	}
	stop(l);
	follow_init(&l->events);
	l->begun_at = now;
	if (follow_start(&l->events, argv))
		snprintf(l->job, sizeof(l->job), "%s", job);
	return l;
}

/* Whole lines that are JSON: what the command says of its troubles is none. */
static void print_events(FILE *f, const char *text)
{
	const char *before = "";

	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		struct json_value *v = json_parse(text, (size_t)(end - text));

		if (v && json_get(v, "name")) {
			fprintf(f, "%s%.*s", before, (int)(end - text), text);
			before = ",";
		}
		json_free(v);
	}
}

char *web_events(const char *hale, const char *job)
{
	double now = clock_seconds();
	struct listener *l;
	char *text = NULL;
	size_t len;
	FILE *f;

	stop_unwanted(now);
	l = listen_to(hale, job, now);
	l->asked_at = now;
	while (follow_read(&l->events))
		;
	f = open_memstream(&text, &len);
	if (!f)
		return NULL;
	fputs("{\"events\":[", f);
	print_events(f, follow_last(&l->events, SHOWN));
	fputs("]}", f);
	return fclose(f) == 0 ? text : NULL;
}

void web_events_fini(void)
{
	for (int i = 0; i < LISTENERS; i++)
		stop(&listeners[i]);
}
