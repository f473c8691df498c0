/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the backplane that are about a job, as its head has seen them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "report/report.h"

static bool is_info(const struct report_event *e)
{
	return strcmp(e->severity, "INFO") == 0;
}

/* Checkpoints alone make two of INFO each: these make room first, while there are many. */
static size_t least_wanted(const struct report *r, const struct report_event *more)
{
	size_t infos = is_info(more), oldest = 0;

	for (size_t i = r->event_count; i-- > 0;)
		if (is_info(&r->events[i])) {
			infos++;
			oldest = i;
		}
	return infos > REPORT_EVENTS_INFO ? oldest : 0;
}

void report_add_event(struct report *r, const struct report_event *e)
{
	if (!r->events)
		r->events = calloc(REPORT_EVENTS, sizeof(*r->events));
	if (!r->events)
		return;
	if (r->event_count == REPORT_EVENTS) {
		size_t i = least_wanted(r, e);

		memmove(&r->events[i], &r->events[i + 1],
			(r->event_count - i - 1) * sizeof(*r->events));
		r->event_count--;
		r->events_before++;
	}
	r->events[r->event_count++] = *e;
}

void report_print_events(const struct report *r, size_t most, struct json_out *j)
{
	size_t skipped = r->event_count > most ? r->event_count - most : 0;

	if (r->events_before + skipped > 0)
		json_uint(j, "events_before", r->events_before + skipped);
	json_open_array(j, "events");
	for (size_t i = skipped; i < r->event_count; i++) {
		const struct report_event *e = &r->events[i];

		json_open_object(j, NULL);
		json_string(j, "time", e->time);
		json_double(j, "at_seconds", e->at_seconds);
		json_string(j, "severity", e->severity);
		json_string(j, "namespace", e->space);
		json_string(j, "name", e->name);
		json_string(j, "host", e->host);
		json_string(j, "payload", e->payload);
		json_close_object(j);
	}
	json_close_array(j);
}

static void copy(char *to, size_t size, const struct json_value *v, const char *key)
{
	snprintf(to, size, "%s", json_text(json_get(v, key), ""));
}

void report_read_events(struct report *r, const struct json_value *v)
{
	const struct json_value *list = json_get(v, "events");

	r->events_before = (uint64_t)json_number_int(json_get(v, "events_before"), 0);
	for (size_t i = 0; i < json_count(list); i++) {
		const struct json_value *from = json_at(list, i);
		struct report_event e = {.at_seconds =
					     json_number(json_get(from, "at_seconds"), 0)};

		copy(e.time, sizeof(e.time), from, "time");
		copy(e.severity, sizeof(e.severity), from, "severity");
		copy(e.space, sizeof(e.space), from, "namespace");
		copy(e.name, sizeof(e.name), from, "name");
		copy(e.host, sizeof(e.host), from, "host");
		copy(e.payload, sizeof(e.payload), from, "payload");
		report_add_event(r, &e);
	}
}
