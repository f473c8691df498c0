/* SPDX-License-Identifier: BSD-3-Clause */
/* hale events: looking at the backplane, and publishing by hand. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/events.h"
#include "ftb/ftb.h"
#include "ftb/lib.h"
#include "head/watch/watch.h"
#include <libftb.h>

enum { QUIET_MS = 300 }; /* without --follow: so long without one more, and that was all */

struct events_view {
	bool json, follow;
	long count; /* ends after so many; 0: does not */
	char filter[512];
	pthread_mutex_t lock;
	pthread_cond_t news;
	long shown;
	bool ended; /* nobody reads any more */
	int fault;  /* … because it can't be written: an errno */
	struct events_place place;
};

static int usage(const char *what)
{
	log_warn("%s; `hale help events` says how", what);
	return EXIT_USAGE;
}

/* The words may be far apart: what was meant is in the same sentence. */
static int publish_usage(const char *option)
{
	const char *guess = cli_meant("events", option);
	char text[256];

	snprintf(text, sizeof(text),
		 "hale events publish has --job JOB and no other option; a payload that begins "
		 "with -- stands behind a --%s%s",
		 *guess ? ";" : "", guess);
	return usage(text);
}

static int no_broker(int ret, const struct events_place *place)
{
	bool gone = place->job[0] && !place->running;
	char path[108];

	if (ret != FTB_ERR_NETWORK_NO_ROUTE) {
		log_warn("no connection to the event backplane: %s", HALE_FTB_Error_text(ret));
		return 1;
	}
	if (!ftb_socket_path(path))
		snprintf(path, sizeof(path), "a path that is too long");
	log_warn("%s%s%sno event broker serves this user at %s; name a job (`hale ps` lists them), "
		 "start a broker with `hale backplane`, or say where it is with HALE_FTB",
		 gone ? "no job '" : "", gone ? place->job : "",
		 gone ? "' with events runs here, and " : "", path);
	return 1;
}

/* ---- showing ---- */

/* Length of the UTF-8 character at p, or 0 if there is none. */
static size_t character(const unsigned char *p, size_t left)
{
	size_t n = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 : *p >= 0xe0 && *p < 0xf0 ? 3 : 4;

	if ((*p >= 0x80 && *p < 0xc2) || *p > 0xf4 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* overlong, surrogates, beyond Unicode */
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
	    (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f) ||
	    (*p == 0xc2 && p[1] < 0xa0)) /* and controls of a terminal */
		return 0;
	return n;
}

/* Text as it is, the rest as \xNN: events come from other programs, and go to a terminal. */
static void escape(const unsigned char *from, size_t len, char *to, size_t cap)
{
	size_t n = 0, c;

	for (size_t i = 0; i < len && n + 5 < cap; i += c ? c : 1) {
		c = character(from + i, len - i);
		if (c == 0 || from[i] < 0x20 || from[i] == 0x7f || from[i] == '\\') {
			n += (size_t)snprintf(to + n, cap - n, "\\x%02x", from[i]);
			c = 1;
		} else {
			memcpy(to + n, from + i, c);
			n += c;
		}
	}
	to[n] = 0;
}

static void show_json(const FTB_receive_event_t *e, const void *payload, size_t length,
		      const char *time_text)
{
	static char text[4 * HALE_FTB_MAX_PAYLOAD + 8];
	struct json_out j;

	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "time", time_text);
	json_string(&j, "severity", e->severity);
	json_string(&j, "namespace", e->event_space);
	json_string(&j, "name", e->event_name);
	json_string(&j, "host", e->incoming_src.hostname);
	json_string(&j, "job", e->client_jobid);
	json_string(&j, "client", e->client_name);
	json_int(&j, "pid", e->incoming_src.pid);
	json_int(&j, "seqnum", e->seqnum);
	json_int(&j, "type", e->event_type);
	escape(payload, length, text, sizeof(text));
	json_string(&j, "payload", text);
	json_close_object(&j);
	if (j.text)
		puts(j.text);
	json_out_fini(&j);
}

static void show_line(const FTB_receive_event_t *e, const void *payload, size_t length,
		      const char *time_text)
{
	static char text[4 * HALE_FTB_MAX_PAYLOAD + 8];

	escape(payload, length, text, sizeof(text));
	printf("%s %-7s %s %s host=%s", time_text, e->severity, e->event_space, e->event_name,
	       e->incoming_src.hostname);
	if (e->client_jobid[0])
		printf(" job=%s", e->client_jobid);
	printf("%s%s\n", *text ? " " : "", text);
}

static void show(const FTB_receive_event_t *e, const void *payload, size_t length, void *arg)
{
	struct events_view *v = arg;
	char time_text[TIMESTAMP_SIZE];

	timestamp_print(time_text, timestamp_now() - ftb_event_age_ms);
	pthread_mutex_lock(&v->lock);
	if (!v->ended && (!v->count || v->shown < v->count)) {
		(v->json ? show_json : show_line)(e, payload, length, time_text);
		v->ended = fflush(stdout) != 0;
		v->fault = v->ended && errno != EPIPE ? errno : 0;
		v->shown++;
	}
	pthread_cond_signal(&v->news);
	pthread_mutex_unlock(&v->lock);
}

/* ---- hale events ---- */

static void tell_lost(FTB_client_handle_t c, uint64_t told[2])
{
	uint64_t info = 0, above = 0;

	HALE_FTB_Lost(c, &info, &above);
	if (info != told[0] || above != told[1])
		log_warn("%" PRIu64 " events of severity INFO and %" PRIu64
			 " above it were not shown: "
			 "they came faster than this command could write",
			 info - told[0], above - told[1]);
	told[0] = info;
	told[1] = above;
}

static void wait_for_end(struct events_view *v, FTB_client_handle_t c)
{
	uint64_t told[2] = {0, 0};
	long seen = -1;

	pthread_mutex_lock(&v->lock);
	while (!v->ended && (!v->count || v->shown < v->count) && (v->follow || v->shown != seen)) {
		struct timespec until;

		seen = v->shown;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += QUIET_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		while (v->shown == seen && !v->ended &&
		       pthread_cond_timedwait(&v->news, &v->lock, &until) == 0)
			;
		pthread_mutex_unlock(&v->lock);
		tell_lost(c, told);
		/* its last events have come: it goes on listening for a moment longer than the job
		 */
		if (v->follow && v->place.own && seen == v->shown && !events_job_runs(&v->place))
			v->follow = false;
		pthread_mutex_lock(&v->lock);
	}
	pthread_mutex_unlock(&v->lock);
}

static int watch(struct events_view *v)
{
	FTB_client_t me = {.event_space = "HALE.EVENTS",
			   .client_subscription_style = "FTB_SUBSCRIPTION_NOTIFY"};
	FTB_client_handle_t c;
	FTB_subscribe_handle_t s;
	int ret = events_connect(&me, &v->place, &c);

	if (ret != FTB_SUCCESS)
		return no_broker(ret, &v->place);
	ret = v->follow ? HALE_FTB_Subscribe(&s, c, v->filter, show, v)
			: ftb_subscribe_history(&s, c, v->filter, show, v);
	if (ret != FTB_SUCCESS) {
		log_warn("'%s': %s", v->filter, HALE_FTB_Error_text(ret));
		FTB_Disconnect(c);
		return EXIT_USAGE;
	}
	log_info("waiting for events");
	wait_for_end(v, c);
	FTB_Disconnect(c);
	if (v->fault == 0)
		return 0;
	log_warn("events can't be written any more: %s", strerror(v->fault));
	return 1;
}

static bool add_filter(struct events_view *v, const char *key, const char *text)
{
	size_t n = strlen(v->filter);
	int m = snprintf(v->filter + n, sizeof(v->filter) - n, "%s%s%s", n ? "," : "", key, text);

	return m >= 0 && (size_t)m < sizeof(v->filter) - n;
}

/* ---- hale events publish ---- */

static int publish(int argc, char **argv)
{
	FTB_client_t me = {.client_subscription_style = "FTB_SUBSCRIPTION_NONE",
			   .client_name = "hale-events"};
	FTB_event_info_t info = {.event_name = ""};
	const char *what[4] = {0}, *named = NULL, *job;
	bool words = false; /* "--" was there: a payload may look like an option */
	struct events_place place;
	FTB_client_handle_t c;
	int n = 0, ret;

	for (int i = 1; i < argc; i++) {
		if (!words && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0))
			return cli_help("events");
		if (!words && strcmp(argv[i], "--") == 0)
			words = true;
		else if (!words && strcmp(argv[i], "--job") == 0 && i + 1 < argc)
			named = argv[++i];
		else if (!words && strncmp(argv[i], "--", 2) == 0)
			return publish_usage(argv[i]);
		else if (n < 4)
			what[n++] = argv[i];
		else
			n = 5;
	}
	if (n < 3 || n > 4)
		return usage(
		    "hale events publish takes NAMESPACE NAME SEVERITY and perhaps a payload");
	if (strlen(what[0]) >= sizeof(me.event_space) ||
	    !ftb_name_ok(what[0], strlen(what[0]), true))
		return usage("a namespace is words of A-Z a-z 0-9 _ - with dots between them, "
			     "at most 63 bytes");
	if (strlen(what[1]) >= sizeof(info.event_name) ||
	    !ftb_name_ok(what[1], strlen(what[1]), false))
		return usage("an event's name is one word of A-Z a-z 0-9 _ -, at most 31 bytes");
	if (ftb_severity_parse(what[2], strlen(what[2])) < 0)
		return usage("a severity is INFO, WARNING, ERROR or FATAL");
	if (what[3] && strlen(what[3]) > HALE_FTB_MAX_PAYLOAD)
		return usage("a payload has at most 8192 bytes");
	events_find(named, &place);
	job = !named ? "" : place.running ? watch_job_name(named) : named;
	if (strlen(job) >= sizeof(me.client_jobid))
		return usage("a job's name in events has at most 15 bytes, and no such job runs");
	snprintf(me.event_space, sizeof(me.event_space), "%s", what[0]);
	snprintf(me.client_jobid, sizeof(me.client_jobid), "%s", job);
	snprintf(info.event_name, sizeof(info.event_name), "%s", what[1]);
	snprintf(info.severity, sizeof(info.severity), "%s", what[2]);
	ret = events_connect(&me, &place, &c);
	if (ret != FTB_SUCCESS)
		return no_broker(ret, &place);
	ret = FTB_Declare_publishable_events(c, NULL, &info, 1);
	if (ret == FTB_SUCCESS)
		ret = HALE_FTB_Publish(c, what[1], HALE_FTB_EVENT_NORMAL, what[3],
				       what[3] ? strlen(what[3]) : 0, NULL);
	FTB_Disconnect(c);
	if (ret != FTB_SUCCESS)
		log_warn("not published: %s", HALE_FTB_Error_text(ret));
	return ret == FTB_SUCCESS ? 0 : 1;
}

int cli_events(int argc, char **argv)
{
	struct events_view v = {.lock = PTHREAD_MUTEX_INITIALIZER,
				.news = PTHREAD_COND_INITIALIZER};
	const char *job = NULL;
	struct ftb_filter parsed;
	bool fits = true;
	int fault;

	signal(SIGPIPE, SIG_IGN);
	if (argc > 1 && strcmp(argv[1], "publish") == 0)
		return publish(argc - 1, argv + 1);
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];

		if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0)
			return cli_help("events");
		if (strcmp(a, "--json") == 0)
			v.json = true;
		else if (strcmp(a, "--follow") == 0 || strcmp(a, "-f") == 0)
			v.follow = true;
		else if (strcmp(a, "--filter") == 0 && i + 1 < argc)
			fits &= add_filter(&v, "", argv[++i]);
		else if (strcmp(a, "--count") == 0 && i + 1 < argc) {
			if (!units_parse_int(argv[++i], 1, 1000000000, &v.count))
				return usage("--count takes a number from 1 on");
		} else if (a[0] != '-' && !job) {
			job = a;
		} else {
			return usage("hale events takes one job, --follow, --filter F, --count N "
				     "and --json");
		}
	}
	events_find(job, &v.place);
	if (job && !v.place.own)
		fits &= add_filter(&v, "job=", v.place.running ? watch_job_name(job) : job);
	if (!fits)
		return usage("that filter is too long");
	/* before anybody is asked who may not be there */
	fault = ftb_filter_parse(v.filter, &parsed);
	if (fault != FTB_SUCCESS) {
		log_warn("'%s': %s", v.filter, HALE_FTB_Error_text(fault));
		return EXIT_USAGE;
	}
	return watch(&v);
}
