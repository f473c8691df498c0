/* SPDX-License-Identifier: BSD-3-Clause */
/* From a profile to numbers with limits. */
#include <math.h>
#include "base/base.h"
#include "model/advise.h"

/* The 97.5 % quantile of Student's distribution. */
static double student(uint64_t freedom)
{
	static const double few[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306};
	const double z = 1.959964;
	double v = (double)freedom;

	if (freedom <= ARRAY_LEN(few))
		return few[freedom - 1];
	return z + (z * z * z + z) / (4 * v) +
	       (5 * pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * v * v);
}

static struct advise_known assumed(double low, double high)
{
	return (struct advise_known){(low + high) / 2, low, high, ADVISE_ASSUMED};
}

/* Several measurements, their mean known to be at least floor. */
static struct advise_known measured(double mean, double deviation, uint64_t count, double floor)
{
	struct advise_known k = {.value = mean > floor ? mean : floor};
	double half;

	if (count < 2 || isnan(deviation)) {
		k.low = k.value / 1.5;
		k.high = k.value * 1.5;
		k.source = ADVISE_ONCE;
		return k;
	}
	half = student(count - 1) * deviation / sqrt((double)count);
	k.low = k.value - half > floor ? k.value - half : floor;
	k.high = k.value + half;
	k.source = ADVISE_MEASURED;
	return k;
}

/* Where a profile's numbers come from, and the first one that can't be right. */
struct advise_measure_reading {
	const char *wrong; /* NULL: none so far */
};

/* More seconds and bytes than any run has. */
#define MOST 1e18

/* NAN: there is none. */
static double number_of(struct advise_measure_reading *r, const struct json_value *v,
			const char *key)
{
	double x = json_number(json_get(v, key), NAN);

	if (!isnan(x) && !(x >= 0 && x <= MOST)) {
		r->wrong = r->wrong ? r->wrong : key;
		return NAN;
	}
	return x;
}

/* The difference of two measurements: noise may put it below zero. */
static double difference_of(struct advise_measure_reading *r, const struct json_value *v,
			    const char *key)
{
	double x = json_number(json_get(v, key), NAN);

	if (!isnan(x) && !(fabs(x) <= MOST)) {
		r->wrong = r->wrong ? r->wrong : key;
		return NAN;
	}
	return x;
}

static uint64_t count_of(struct advise_measure_reading *r, const struct json_value *v,
			 const char *key)
{
	int64_t n = json_number_int(json_get(v, key), 0);

	if (n >= 0 && n <= UINT32_MAX)
		return (uint64_t)n;
	r->wrong = r->wrong ? r->wrong : key;
	return 0;
}

/* What a checkpoint costs lies between its pause and all the time that it is being written; where
 * the program's progress doesn't show it, more is not known. */
static struct advise_checkpoint read_checkpoint(struct advise_measure_reading *r,
						const struct json_value *v)
{
	struct advise_checkpoint c = {.count = count_of(r, v, "count"),
				      .bytes = number_of(r, v, "bytes"),
				      .pause_s = number_of(r, v, "pause_seconds")};
	double cost = difference_of(r, v, "cost_seconds"), write = number_of(r, v, "write_seconds");

	if (c.count == 0 || isnan(write))
		return (struct advise_checkpoint){0};
	if (isnan(c.pause_s))
		c.pause_s = 0;
	c.write_s = measured(write, number_of(r, v, "write_deviation"), c.count, c.pause_s);
	if (isnan(cost))
		c.cost_s = assumed(c.pause_s, c.write_s.value);
	else
		c.cost_s = measured(cost, number_of(r, v, "cost_deviation"), c.count, c.pause_s);
	return c;
}

/* Reading an image takes about as long as writing it. */
static struct advise_known read_restart(struct advise_measure_reading *r,
					const struct json_value *v,
					const struct advise_checkpoint *c)
{
	uint64_t count = count_of(r, v, "count");
	double seconds = number_of(r, v, "seconds");

	if (count > 0 && !isnan(seconds))
		return measured(seconds, number_of(r, v, "deviation"), count, 0);
	if (c->count > 0)
		return assumed(0.5 * c->write_s.value, 2 * c->write_s.value);
	return (struct advise_known){0};
}

static void read_communication(struct advise_measure_reading *r, const struct json_value *v,
			       struct advise_measure *m)
{
	double share, beta = number_of(r, v, "beta");
	double bytes = number_of(r, json_get(v, "messages"), "bytes");

	m->alpha = number_of(r, v, "mpi_share");
	m->alpha_least = number_of(r, v, "mpi_share_least");
	m->alpha_most = number_of(r, v, "mpi_share_most");
	m->f_send = number_of(r, v, "f_send");
	m->f_recv = number_of(r, v, "f_recv");
	m->message_bytes_hz = m->app_s > 0 && !isnan(bytes) ? bytes / m->app_s / m->ranks : 0;
	/* ranks differ in their share of communication, and so does what it does to them */
	share = m->alpha > 0 ? 1 / m->alpha : 0;
	m->beta = (struct advise_known){.value = beta,
					.low = beta * fmin(1, m->alpha_least * share),
					.high = fmin(1, beta * fmax(1, m->alpha_most * share)),
					.source = ADVISE_MEASURED};
}

static bool in_unit(double x)
{
	return x >= 0 && x <= 1;
}

/* What the report of a run with --tasks says of its tasks (node/task_account.h). */
static void read_tasks(struct advise_measure_reading *r, const struct json_value *t,
		       struct advise_measure *m)
{
	const struct json_value *s = json_get(t, "seconds");
	double in_tasks;

	if (!t || count_of(r, t, "run") == 0)
		return;
	in_tasks = number_of(r, s, "tasks");
	m->coverage = number_of(r, t, "coverage");
	if (in_tasks > 0)
		m->task_waste = (number_of(r, s, "checkpoint") + number_of(r, s, "log")) / in_tasks;
	/* all errors of a run may have been mended; of all that will come some will not be */
	if (m->coverage > 0.999)
		m->coverage = 0.999;
	if (m->task_waste > 0.999)
		m->task_waste = 0.999;
}

hale_status_t advise_measure_read(const struct json_value *v, struct advise_measure *m,
				  struct error *err)
{
	const struct json_value *inner = json_get(v, "profile"), *checkpoints;
	const struct json_value *tasks = json_get(v, "tasks");
	struct advise_measure_reading r = {NULL};

	*m = (struct advise_measure){0};
	if (inner)
		v = inner;
	else if (json_get(v, "exit"))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "this report has no profile: none of the program's ranks called "
				 "MPI_Init");
	m->ranks = (uint32_t)count_of(&r, v, "ranks");
	m->wall_s = number_of(&r, v, "wall_seconds");
	m->app_s = m->ranks ? number_of(&r, v, "app_seconds") / m->ranks : 0;
	if (m->ranks == 0 || !(m->app_s > 0))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "this is no profile of hale's; `hale run --profile FILE` and "
				 "`hale run --report FILE` write one");
	read_communication(&r, v, m);
	if (!in_unit(m->alpha) || !in_unit(m->beta.value) || !in_unit(m->f_send) ||
	    !in_unit(m->f_recv) || !in_unit(m->alpha_least) || !in_unit(m->alpha_most))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the profile is damaged: a share in it is not between 0 and 1");
	checkpoints = json_get(v, "checkpoints");
	m->full = read_checkpoint(&r, json_get(checkpoints, "full"));
	m->incremental = read_checkpoint(&r, json_get(checkpoints, "incremental"));
	m->restart_s =
	    read_restart(&r, json_get(v, "restarts"), m->full.count ? &m->full : &m->incremental);
	read_tasks(&r, tasks, m);
	if (r.wrong)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the profile is damaged: its '%s' is negative or too large to be "
				 "true",
				 r.wrong);
	return HALE_OK;
}

static struct advise_known given(double x)
{
	return (struct advise_known){x, x, x, ADVISE_GIVEN};
}

void advise_measure_override(struct advise_measure *m, double ckpt_cost_s, double restart_s)
{
	if (!isnan(ckpt_cost_s)) {
		m->full.cost_s = given(ckpt_cost_s);
		if (m->full.count == 0 || m->full.write_s.value < ckpt_cost_s)
			m->full.write_s = given(ckpt_cost_s);
		m->full.count = m->full.count ? m->full.count : 1;
		m->incremental.count = 0;
	}
	if (!isnan(restart_s))
		m->restart_s = given(restart_s);
	else if (m->restart_s.source == ADVISE_UNKNOWN && m->full.count)
		m->restart_s = assumed(0.5 * m->full.write_s.value, 2 * m->full.write_s.value);
}
