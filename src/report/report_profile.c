/* SPDX-License-Identifier: BSD-3-Clause */
/* The "profile" of a report: what the ranks counted, and what checkpoints and restarts cost. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>
#include "base/base.h"
#include "report/report.h"

static void series_add(struct report_series *s, double x)
{
	s->count++;
	s->sum += x;
	s->squares += x * x;
}

static double series_mean(const struct report_series *s)
{
	return s->count ? s->sum / (double)s->count : NAN;
}

/* Of one measurement; not known from less than two. */
static double series_deviation(const struct report_series *s)
{
	double n = (double)s->count, variance;

	if (s->count < 2)
		return NAN;
	variance = (s->squares - s->sum * s->sum / n) / (n - 1);
	return variance > 0 ? sqrt(variance) : 0;
}

void report_sum_up(const struct report *r, size_t n, struct report_sums sums[2])
{
	for (size_t i = 0; i < n; i++) {
		const struct report_checkpoint *c = &r->checkpoints[i];
		struct report_sums *s = &sums[c->base != 0];
		double x;

		if (!c->complete)
			continue;
		series_add(&s->bytes, (double)c->bytes);
		series_add(&s->pause, c->pause_seconds);
		series_add(&s->seconds, c->seconds);
		if (profile_checkpoint_cost(&r->pace, &c->during, &x))
			series_add(&s->cost, x);
	}
}

static void print_kind(const struct report_sums *s, const char *key, struct json_out *j)
{
	json_open_object(j, key);
	json_uint(j, "count", s->bytes.count);
	json_double(j, "bytes", series_mean(&s->bytes));
	json_double(j, "pause_seconds", series_mean(&s->pause));
	json_double(j, "write_seconds", series_mean(&s->seconds));
	json_double(j, "write_deviation", series_deviation(&s->seconds));
	json_double(j, "cost_seconds", series_mean(&s->cost));
	json_double(j, "cost_deviation", series_deviation(&s->cost));
	json_close_object(j);
}

static void print_restarts(const struct report *r, struct json_out *j)
{
	struct report_series seconds = {0};
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
	struct report_sums sums[2] = {r->before[0], r->before[1]};

	report_sum_up(r, r->checkpoint_count, sums);
	profile_print(&r->profile, key, j);
	json_double(j, "wall_seconds", wall_seconds);
	json_open_object(j, "checkpoints");
	print_kind(&sums[0], "full", j);
	print_kind(&sums[1], "incremental", j);
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
