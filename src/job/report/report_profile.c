/* SPDX-License-Identifier: BSD-3-Clause */
/* The "profile" of a report: what the ranks counted, and what checkpoints and restarts cost. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>
#include "base/base.h"
#include "job/report/report.h"

/* Mean and spread of something measured several times. */
struct series {
	uint64_t count;
	double sum, squares;
};

static void series_add(struct series *s, double x)
{
	s->count++;
	s->sum += x;
	s->squares += x * x;
}

static double series_mean(const struct series *s)
{
	return s->count ? s->sum / (double)s->count : NAN;
}

/* Of one measurement; not known from less than two. */
static double series_deviation(const struct series *s)
{
	double n = (double)s->count, variance;

	if (s->count < 2)
		return NAN;
	variance = (s->squares - s->sum * s->sum / n) / (n - 1);
	return variance > 0 ? sqrt(variance) : 0;
}

static void print_kind(const struct report *r, bool full, const char *key, struct json_out *j)
{
	struct series bytes = {0}, pause = {0}, seconds = {0}, cost = {0};

	for (size_t i = 0; i < r->checkpoint_count; i++) {
		const struct report_checkpoint *c = &r->checkpoints[i];
		double x;

		if (!c->complete || (c->base == 0) != full)
			continue;
		series_add(&bytes, (double)c->bytes);
		series_add(&pause, c->pause_seconds);
		series_add(&seconds, c->seconds);
		if (profile_checkpoint_cost(&r->pace, &c->during, &x))
			series_add(&cost, x);
	}
	json_open_object(j, key);
	json_uint(j, "count", bytes.count);
	json_double(j, "bytes", series_mean(&bytes));
	json_double(j, "pause_seconds", series_mean(&pause));
	json_double(j, "write_seconds", series_mean(&seconds));
	json_double(j, "write_deviation", series_deviation(&seconds));
	json_double(j, "cost_seconds", series_mean(&cost));
	json_double(j, "cost_deviation", series_deviation(&cost));
	json_close_object(j);
}

static void print_restarts(const struct report *r, struct json_out *j)
{
	struct series seconds = {0};
	double lost = 0;

	for (size_t i = 0; i < r->failure_count; i++) {
		lost += r->failures[i].lost_seconds;
		if (r->failures[i].restart_seconds > 0)
			series_add(&seconds, r->failures[i].restart_seconds);
	}
	json_open_object(j, "restarts");
	json_uint(j, "count", seconds.count);
	json_double(j, "seconds", series_mean(&seconds));
	json_double(j, "deviation", series_deviation(&seconds));
	json_double(j, "lost_seconds", lost);
	json_close_object(j);
}

void report_print_profile(const struct report *r, const char *key, double wall_seconds,
			  struct json_out *j)
{
	profile_print(&r->profile, key, j);
	json_double(j, "wall_seconds", wall_seconds);
	json_open_object(j, "checkpoints");
	print_kind(r, true, "full", j);
	print_kind(r, false, "incremental", j);
	json_close_object(j);
	print_restarts(r, j);
	json_close_object(j);
}

hale_status_t report_write_profile(const struct report *r, const char *path, double wall_seconds,
				   struct error *err)
{
	struct json_out j;
	hale_status_t status;

	json_out_init(&j);
	report_print_profile(r, NULL, wall_seconds, &j);
	status = report_write_text(&j, "profile", path, err);
	json_out_fini(&j);
	return status;
}
