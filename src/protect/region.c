/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/exit_status.h"
#include "base/fmt.h"
#include "base/units.h"
#include "node/guest.h"
#include "protect/protect.h"
#include "protect/team.h"

_Static_assert((int)EXIT_UNRECOVERABLE == HALE_EXIT_UNRECOVERABLE,
	       "hale/protect.h says what it is");

pthread_mutex_t protect_lock = PTHREAD_MUTEX_INITIALIZER;
struct hale_region *protect_regions;
struct protect_figure *protect_figures;

static char settings[1024];
static pthread_once_t started = PTHREAD_ONCE_INIT;

static void setting_look(const char *s)
{
	long workers;

	if (strncmp(s, "report=", 7) == 0 || strncmp(s, "ckpt=", 5) == 0)
		return;
	if (strncmp(s, "threads=", 8) != 0)
		protect_die(
		    64,
		    "HALE_PROTECT: '%s' is unknown; report=FILE, ckpt=DIR and threads=N are known",
		    s);
	if (!units_parse_int(s + 8, 1, TEAM_MAX, &workers))
		protect_die(64, "HALE_PROTECT: '%s': threads=N needs N from 1 to %d", s, TEAM_MAX);
	team_limit((int)workers);
}

/* Another thread may hold it when this one forks. */
static void lock_take(void)
{
	pthread_mutex_lock(&protect_lock);
}

static void lock_give(void)
{
	pthread_mutex_unlock(&protect_lock);
}

static void start_once(void)
{
	const char *text = getenv("HALE_PROTECT");

	log_init_from_env();
	hale_guest_log();
	if (text && strlen(text) >= sizeof settings)
		protect_die(64, "HALE_PROTECT is longer than %zu bytes", sizeof settings - 1);
	fmt_print(settings, sizeof settings, "%s", text ? text : "");
	for (char *s = settings; *s; s++)
		if (*s == ',')
			*s = '\0';
	for (const char *s = text ? settings : ""; *s; s += strlen(s) + 1)
		setting_look(s);
	pthread_atfork(lock_take, lock_give, lock_give);
	atexit(hale_protect_report);
	inject_start();
}

void protect_start(void)
{
	pthread_once(&started, start_once);
}

const char *protect_setting(const char *name)
{
	size_t len = strlen(name);

	for (const char *s = settings; *s; s += strlen(s) + 1)
		if (strncmp(s, name, len) == 0)
			return s + len;
	return NULL;
}

void protect_die(int status, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	fmt_vprint(text, sizeof text, fmt, ap);
	va_end(ap);
	if (log_level() < LOG_WARN)
		log_set_level(LOG_WARN); /* the last sentence is never kept quiet */
	log_warn("%s", text);
	exit(status);
}

struct protect_figure *protect_figure(const char *name)
{
	struct protect_figure *f;

	for (f = protect_figures; f; f = f->next)
		if (strncmp(f->name, name, sizeof f->name - 1) == 0)
			return f;
	f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	fmt_print(f->name, sizeof f->name, "%s", name);
	f->next = protect_figures;
	protect_figures = f;
	return f;
}

void hale_enter(struct hale_region *r, ...)
{
	va_list vars;
	const struct hale_var *v;

	protect_start();
	pthread_mutex_lock(&protect_lock);
	if (r->runs++ == 0) {
		r->next = protect_regions;
		protect_regions = r;
	}
	pthread_mutex_unlock(&protect_lock);
	va_start(vars, r);
	while ((v = va_arg(vars, const struct hale_var *)))
		inject_at_enter(r, v);
	va_end(vars);
}

void hale_recompute(struct hale_region *r, struct hale_var *v, const char *producer)
{
	v->wrong = false;
	protect_left(v);
	if (++v->misses > PROTECT_MISSES_MAX)
		hale_unrecoverable(r, v, producer);
	log_info("region '%s' (%s:%d): variable '%s' was damaged; %s runs again", r->name, r->file,
		 r->line, v->name, producer);
	pthread_mutex_lock(&protect_lock);
	r->recomputed++;
	inject_outcome(v->name, "recomputed");
	struct protect_figure *f = protect_figure(v->name);
	if (f)
		f->recomputed++;
	pthread_mutex_unlock(&protect_lock);
}

void hale_unrecoverable(struct hale_region *r, struct hale_var *v, const char *tried)
{
	pthread_mutex_lock(&protect_lock);
	r->unrecoverable++;
	struct protect_figure *f = protect_figure(v->name);
	if (f)
		f->unrecoverable++;
	pthread_mutex_unlock(&protect_lock);
	if (v->misses > PROTECT_MISSES_MAX)
		protect_die(
		    HALE_EXIT_UNRECOVERABLE,
		    "unrecoverable: region '%s' (%s:%d) found variable '%s' damaged %d times in a "
		    "row; tried: %s. Either the region itself writes it, or the error is "
		    "permanent: use "
		    "other memory or another machine",
		    r->name, r->file, r->line, v->name, v->misses, tried);
	protect_die(
	    HALE_EXIT_UNRECOVERABLE,
	    "unrecoverable: region '%s' (%s:%d) found variable '%s' damaged; tried: %s. Run the "
	    "program again, or add a Recover method",
	    r->name, r->file, r->line, v->name, *tried ? tried : "nothing, none is given");
}
