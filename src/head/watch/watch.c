/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/watch/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "ftb/ftb.h"
#include "head/watch/watch_private.h"

/* In each tenth of a second. */
#define WINDOW_SECONDS 0.1
#define SHARE_SECONDS  0.01

/* ---- the bus ---- */

static double processor_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void rested(void *arg)
{
	struct watch *w = arg;

	loop_change(&w->head->loop, &w->source, EPOLLIN);
}

/* The loop calls it when events have come. The head has one thread, and often shares its core with
 * ranks. So events get about SHARE_SECONDS of processor time in each WINDOW_SECONDS. The rest waits
 * in the publishers' queues, which have bounds of their own, until the next window. */
static void bus_ready(void *arg, uint32_t events)
{
	struct watch *w = arg;
	double now = clock_seconds(), began = processor_seconds();

	if (w->broker)
		broker_dispatch(w->broker);
	else
		tap_dispatch(w->tap);
	if (now - w->window > WINDOW_SECONDS) {
		w->window = now;
		w->spent = 0;
	}
	w->spent += processor_seconds() - began;
	if (w->spent < SHARE_SECONDS)
		return;
	loop_change(&w->head->loop, &w->source, 0);
	loop_timer_set(&w->head->loop, &w->rest, w->window + WINDOW_SECONDS - now, rested, w);
}

/* The machine's broker, or that of an outer job. */
static bool join(struct watch *w)
{
	const char *named = getenv("HALE_FTB");
	struct error why;

	if (!ftb_socket_path(w->path))
		return false;
	if (tap_create(w->path, &w->tap, &why) == HALE_OK)
		return true;
	if (named && *named)
		head_say(w->head, "%s; the job gets an event broker of its own", why.text);
	return false;
}

/* A name and no file: nothing is left of it, however the head ends. */
static hale_status_t serve(struct watch *w, struct error *err)
{
	struct broker_options o = {.socket = w->path, .node = w->head->id.node};
	struct broker_carrier carrier;
	const char **names = NULL;
	hale_status_t status;

	snprintf(w->path, sizeof(w->path), "@hale/%u/%s/ftb", (unsigned)geteuid(), w->head->id.job);
	if (watch_carrier(w, &carrier, &names)) {
		o.carrier = &carrier;
		o.arity = WATCH_ARITY;
		o.heartbeat = WATCH_HEARTBEAT;
		o.dead = WATCH_DEAD;
	}
	status = broker_create(&o, &w->broker, err);
	/* any user can take a name in advance, but not one that nobody foresees */
	if (status == HALE_ERR_STATE) {
		snprintf(w->path, sizeof(w->path), "@hale/%u/%s/ftb.%06x", (unsigned)geteuid(),
			 w->head->id.job, (unsigned)ftb_random() & 0xffffff);
		status = broker_create(&o, &w->broker, err);
	}
	free(names);
	return status;
}

static hale_status_t bus_open(struct watch *w, struct error *err)
{
	hale_status_t status = HALE_OK;

	if (!join(w))
		status = serve(w, err);
	if (status != HALE_OK)
		return status;
	setenv("HALE_FTB", w->path, 1);
	if (!loop_add(&w->head->loop, &w->source, w->broker ? broker_fd(w->broker) : tap_fd(w->tap),
		      EPOLLIN, bus_ready, w))
		return error_sys(err, HALE_ERR_SYSTEM, "cannot listen to the job's events");
	return HALE_OK;
}

const char *watch_job_name(const char *job)
{
	size_t n = strlen(job);

	return n > 15 ? job + n - 15 : job;
}

hale_status_t watch_subscribe(struct watch *w, const char *filter,
			      void (*callback)(const struct broker_event *event, void *arg),
			      struct error *err)
{
	unsigned id;

	return w->broker ? broker_subscribe(w->broker, filter, callback, w, &id, err)
			 : tap_subscribe(w->tap, filter, callback, w, err);
}

void watch_tell(struct head *h, const char *space, const char *name, int severity, const char *fmt,
		...)
{
	struct watch *w = h->watch;
	char payload[EVENT_PAYLOAD_MAX + 1];
	hale_status_t status;
	struct error err;
	va_list ap;
	int n;

	if (!w || !w->begun)
		return;
	va_start(ap, fmt);
	n = vsnprintf(payload, sizeof(payload), fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof(payload))
		n = sizeof(payload) - 1;
	watch_keep(h, ftb_severity_names[severity], space, name, h->id.node, payload, (size_t)n);
	w->telling = true;
	if (w->broker)
		status = broker_publish(w->broker, space, name, severity, watch_job_name(h->id.job),
					payload, (size_t)n, &err);
	else
		status = tap_publish(w->tap, space, name, severity, watch_job_name(h->id.job),
				     payload, (size_t)n, &err);
	w->telling = false;
	if (status != HALE_OK && !w->muted)
		log_warn("%s is not published: %s", name, err.text);
	w->muted |= status != HALE_OK;
}

/* ---- life ---- */

static void watch_free(struct watch *w)
{
	struct loop *loop = &w->head->loop;

	watch_children_stop(w);
	watch_rules_stop(w);
	loop_remove(loop, &w->source);
	loop_timer_clear(loop, &w->rest);
	broker_destroy(w->broker);
	tap_destroy(w->tap);
	free(w->carried);
	free(w);
}

/* Whether the user said so, not only whether it is the default. */
static bool asked_for(const struct options *o)
{
	return o->events || o->rules || o->monitor_count > 0;
}

hale_status_t watch_start(struct head *h, struct error *err)
{
	struct watch *w;
	hale_status_t status;

	if (h->o->no_events)
		return HALE_OK;
	w = calloc(1, sizeof(*w));
	if (!w)
		return error_set(err, HALE_ERR_MEMORY, "out of memory");
	w->head = h;
	w->source.fd = -1;
	w->last = &w->first;
	status = bus_open(w, err);
	if (status == HALE_OK)
		status = watch_rules_start(w, err);
	if (status == HALE_OK)
		status = watch_kept_start(w, err);
	if (status == HALE_OK)
		status = watch_monitors_start(w, err);
	if (status == HALE_OK) {
		h->watch = w;
		return HALE_OK;
	}
	watch_free(w);
	if (asked_for(h->o))
		return status;
	log_info("the job goes without events: %s", err->text);
	return HALE_OK;
}

void watch_stop(struct head *h)
{
	struct watch *w = h->watch;

	if (!w)
		return;
	if (!h->succession.superseded)
		watch_tell(h, "FTB.JL", "FTB_JOB_ENDED", h->end.status ? FTB_ERROR : FTB_INFO,
			   "JOB:%s::EXIT:%d::SECONDS:%.3f::RESTARTS:%u", h->id.job, h->end.status,
			   head_seconds(h), h->report.restarts);
	h->watch = NULL;
	watch_free(w);
}

void watch_print(const struct head *h, struct json_out *j)
{
	const struct watch *w = h->watch;

	json_string(j, "events", w ? w->path : "");
	json_open_array(j, "nodes");
	for (uint32_t i = 0; w && i < w->node_count; i++) {
		const struct node *n = &h->node_set.nodes[i];

		json_open_object(j, NULL);
		json_string(j, "node", n->name);
		json_bool(j, "usable", !n->unusable);
		if (n->unusable)
			json_string(j, "why", w->nodes[i].why);
		json_close_object(j);
	}
	json_close_array(j);
}
