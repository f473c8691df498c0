/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults on purpose:
 * HALE_PROTECT_INJECT=var=NAME,region=NAME,run=N,bits=K,seed=N[,when=enter|check] flips K bits of a
 * variable when run N of a region begins, or before its check. Several are parted by
 * ';'. HALE_PROTECT_INJECT=rate=EVENTS_PER_SECOND,seed=N flips one bit at a time in whatever is
 * live, at exponentially distributed moments, until the program ends; times=T1:T2:… at these
 * moments. log=FILE appends each flip to a file before it strikes. The ranks of a job draw from
 * seeds of their own. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "base/fmt.h"
#include "base/json.h"
#include "protect/flip.h"
#include "protect/protect.h"

#define FLIPS_MAX 256

struct inject_order {
	char var[48], region[64];
	long run, bits, seed;
	bool at_check, done;
};

struct flip {
	char var[48];
	size_t byte;
	int bit;
	double at;
	bool noted;
	const char *outcome; /* NULL: nobody has noticed it */
};

static struct inject_order orders[16];
static size_t order_count;
static struct flip flips[FLIPS_MAX];
static size_t flip_count;
static double rate, began;
static double times[64];
static size_t time_count;
static uint64_t random_state;
static char log_path[512];
static bool stopping, thread_runs;
static pthread_t thread;
static pthread_mutex_t stop_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stop_bell = PTHREAD_COND_INITIALIZER;

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* A program that dies of the flip has said what it was. */
static void flip_log(const struct hale_reference *ref, size_t byte, int bit)
{
	char line[160];
	int fd = *log_path ? open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return;
	fmt_print(line, sizeof line, "%s %zu %d %.6f %d\n", ref->name, byte, bit,
		  clock_seconds() - began, ref->noted);
	if (write(fd, line, strlen(line)) < 0)
		log_warn("can't write to %s: %s", log_path, strerror(errno));
	close(fd);
}

/* The lock is held, so the variable keeps its reference while its bit is flipped; its memory may be
 * freed. */
static void flip_one(const struct hale_reference *ref, uint64_t *state)
{
	size_t byte = draw(state) % ref->bytes;
	int bit = (int)(draw(state) % 8);

	if (!flip_can(ref->base + byte))
		return; /* freed at the end of its scope, and nobody looks at it any more */
	flip_log(ref, byte, bit);
	if (!flip_bit(ref->base + byte, bit))
		return;
	if (flip_count < FLIPS_MAX) {
		struct flip *f = &flips[flip_count++];
		memcpy(f->var, ref->name, sizeof f->var);
		f->byte = byte;
		f->bit = bit;
		f->at = clock_seconds() - began;
		f->noted = ref->noted;
		f->outcome = NULL;
	}
}

static void inject_by_order(const struct hale_region *r, const struct hale_var *v, bool at_check)
{
	for (size_t i = 0; i < order_count; i++) {
		struct inject_order *o = &orders[i];
		uint64_t state;

		if (o->done || o->at_check != at_check || !v->ref || !v->ref->bytes ||
		    strcmp(o->var, v->name) != 0 ||
		    (*o->region && strcmp(o->region, r->name) != 0) ||
		    (unsigned long long)o->run != r->runs)
			continue;
		o->done = true;
		state = (uint64_t)o->seed;
		pthread_mutex_lock(&protect_lock);
		for (long b = 0; b < o->bits; b++)
			flip_one(v->ref, &state);
		pthread_mutex_unlock(&protect_lock);
	}
}

void inject_outcome(const char *var, const char *outcome)
{
	for (size_t i = 0; i < flip_count; i++)
		if (!flips[i].outcome && strncmp(flips[i].var, var, sizeof flips[i].var - 1) == 0)
			flips[i].outcome = outcome;
}

void inject_at_enter(const struct hale_region *r, const struct hale_var *v)
{
	inject_by_order(r, v, false);
}

void inject_at_check(const struct hale_region *r, const struct hale_var *v)
{
	inject_by_order(r, v, true);
}

/* One bit of all bytes that are live now; none if nothing is. */
static void flip_anywhere(void)
{
	size_t total = 0, at;

	pthread_mutex_lock(&protect_lock);
	for (const struct hale_reference *ref = protect_live; ref; ref = ref->next)
		total += ref->bytes;
	at = total ? draw(&random_state) % total : 0;
	for (const struct hale_reference *ref = protect_live; ref && total; ref = ref->next) {
		if (at < ref->bytes) {
			flip_one(ref, &random_state);
			break;
		}
		at -= ref->bytes;
	}
	pthread_mutex_unlock(&protect_lock);
}

/* False: the program ends. */
static bool sleep_until(double when)
{
	struct timespec t = {(time_t)when, (long)((when - floor(when)) * 1e9)};
	bool go_on;

	pthread_mutex_lock(&stop_lock);
	while (!stopping &&
	       pthread_cond_clockwait(&stop_bell, &stop_lock, CLOCK_MONOTONIC, &t) != ETIMEDOUT)
		;
	go_on = !stopping;
	pthread_mutex_unlock(&stop_lock);
	return go_on;
}

static void *inject_by_time(void *unused)
{
	double when = began;

	for (size_t i = 0; i < time_count && sleep_until(began + times[i]); i++)
		flip_anywhere();
	while (rate > 0) {
		double u = (double)(draw(&random_state) >> 11) * 0x1p-53;
		when += -log(1 - u) / rate;
		if (!sleep_until(when))
			break;
		flip_anywhere();
	}
	return NULL;
}

static void order_refuse(const char *item)
{
	protect_die(64,
		    "HALE_PROTECT_INJECT: '%s' is not understood; it is var=NAME,region=NAME,run=N,"
		    "bits=K,seed=N,when=enter|check, or rate=EVENTS_PER_SECOND,seed=N, or "
		    "times=T1:T2,seed=N; log=FILE",
		    item);
}

static void times_parse(const char *item, const char *text)
{
	char *end;

	do {
		if (time_count == ARRAY_LEN(times))
			order_refuse(item);
		times[time_count] = strtod(text, &end);
		if (end == text || !(times[time_count] >= 0))
			order_refuse(item);
		time_count++;
		text = end + 1;
	} while (*end == ':');
	if (*end)
		order_refuse(item);
}

static void item_parse(struct inject_order *o, const char *item)
{
	const char *value = strchr(item, '=');
	bool fine = value != NULL;
	char *end;

	value = fine ? value + 1 : item;
	if (fine && strncmp(item, "var=", 4) == 0 && strlen(value) < sizeof o->var)
		memcpy(o->var, value, strlen(value) + 1);
	else if (fine && strncmp(item, "region=", 7) == 0 && strlen(value) < sizeof o->region)
		memcpy(o->region, value, strlen(value) + 1);
	else if (fine && strncmp(item, "run=", 4) == 0)
		fine = units_parse_int(value, 1, 1000000000, &o->run);
	else if (fine && strncmp(item, "bits=", 5) == 0)
		fine = units_parse_int(value, 1, FLIPS_MAX, &o->bits);
	else if (fine && strncmp(item, "seed=", 5) == 0)
		fine = units_parse_int(value, 0, 1000000000, &o->seed);
	else if (fine && strncmp(item, "when=", 5) == 0 &&
		 (strcmp(value, "enter") == 0 || strcmp(value, "check") == 0))
		o->at_check = *value == 'c';
	else if (fine && strncmp(item, "log=", 4) == 0 && strlen(value) < sizeof log_path)
		memcpy(log_path, value, strlen(value) + 1);
	else if (fine && strncmp(item, "times=", 6) == 0)
		times_parse(item, value);
	else if (fine && strncmp(item, "rate=", 5) == 0) {
		rate = strtod(value, &end);
		fine = end != value && !*end && rate >= 0 && isfinite(rate);
	} else
		fine = false;
	if (!fine)
		order_refuse(item);
}

static uint64_t rank_now(void)
{
	static const char *const names[] = {"HALE_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (getenv(names[i]))
			return strtoull(getenv(names[i]), NULL, 10);
	return 0;
}

void inject_start(void)
{
	const char *text = getenv("HALE_PROTECT_INJECT");
	char copy[2048], *more = NULL, *rest = NULL;

	began = clock_seconds();
	if (!text || !*text)
		return;
	if (strlen(text) >= sizeof copy)
		protect_die(64, "HALE_PROTECT_INJECT is longer than %zu bytes", sizeof copy - 1);
	memcpy(copy, text, strlen(text) + 1);
	for (char *one = strtok_r(copy, ";", &more); one; one = strtok_r(NULL, ";", &more)) {
		struct inject_order o = {.run = 1, .bits = 1, .seed = 1};
		for (char *item = strtok_r(one, ",", &rest); item;
		     item = strtok_r(NULL, ",", &rest))
			item_parse(&o, item);
		if (*o.var && order_count < ARRAY_LEN(orders))
			orders[order_count++] = o;
		else if (*o.var || (rate <= 0 && !time_count))
			order_refuse(text);
		random_state = ((uint64_t)o.seed + rank_now() * 1000003) * 0x2545f4914f6cdd1du;
	}
	if (rate > 0 || time_count)
		thread_runs = pthread_create(&thread, NULL, inject_by_time, NULL) == 0;
}

void inject_stop(void)
{
	if (!thread_runs || pthread_equal(thread, pthread_self()))
		return;
	pthread_mutex_lock(&stop_lock);
	stopping = true;
	pthread_cond_signal(&stop_bell);
	pthread_mutex_unlock(&stop_lock);
	pthread_join(thread, NULL);
	thread_runs = false;
}

void inject_report(struct json_out *j)
{
	json_open_array(j, "injected");
	for (size_t i = 0; i < flip_count; i++) {
		json_open_object(j, NULL);
		json_string(j, "var", flips[i].var);
		json_uint(j, "byte", flips[i].byte);
		json_int(j, "bit", flips[i].bit);
		json_double(j, "at", flips[i].at);
		json_bool(j, "noted", flips[i].noted);
		json_string(j, "outcome", flips[i].outcome ? flips[i].outcome : "none");
		json_close_object(j);
	}
	json_close_array(j);
}
