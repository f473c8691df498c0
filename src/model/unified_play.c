/* SPDX-License-Identifier: BSD-3-Clause */
/* The unified scheme played out, to see how good its formula is (002 8.4.1). */
#include <math.h>
#include "model/check.h"
#include "model/law.h"
#include "model/sim/sim_random.h"
#include "model/unified.h"

/* So many failures in one run mean that it gets nowhere. */
#define FAILURES_MAX 1e6

struct play {
	struct model_law arrivals;
	double work_s, interval_s, ckpt_s, restart_s, coverage;
};

/* One run: arrivals are a renewal process that takes no notice of the job. Work is kept up to the
 * last complete checkpoint; the last piece needs none. Whole segments between two failures are
 * taken in one step, so the cost is that of the failures. */
static double play_once(const struct play *p, struct sim_random *random, double *failures)
{
	double now_s = 0, kept_s = 0, segment_s = p->interval_s + p->ckpt_s;
	double next_s = model_law_draw_s(&p->arrivals, sim_random_unit(random));

	while (*failures < FAILURES_MAX) {
		double left_s = p->work_s - kept_s;
		/* a little less, or rounding makes a last piece of no work */
		double saved = fmax(0, ceil(left_s / p->interval_s - 1e-9) - 1);
		double end_s = now_s + left_s + saved * p->ckpt_s;

		while (next_s < end_s && p->coverage > 0 && sim_random_unit(random) <= p->coverage)
			next_s += model_law_draw_s(&p->arrivals, sim_random_unit(random));
		if (next_s >= end_s)
			return end_s;
		kept_s += fmin(saved, floor((next_s - now_s) / segment_s)) * p->interval_s;
		/* a restart that is struck begins again */
		do {
			++*failures;
			now_s = next_s;
			next_s += model_law_draw_s(&p->arrivals, sim_random_unit(random));
		} while (next_s < now_s + p->restart_s && *failures < FAILURES_MAX);
		now_s += p->restart_s;
	}
	return INFINITY;
}

static hale_status_t check_play(const struct model_unified *in, const struct play *p, double runs,
				struct error *err)
{
	if (check_positive("the work (s)", in->work_s, err) ||
	    check_positive("the error rate (Hz)", in->due_rate_hz, err) ||
	    check_range("the cost of the task level", in->task_waste, 0, 0.999, err) ||
	    check_positive("the checkpoint interval (s)", p->interval_s, err) ||
	    model_law_check(&p->arrivals, err) ||
	    check_range("the number of runs", runs, 2, 1e9, err))
		return HALE_ERR_ARGUMENT;
	return HALE_OK;
}

static hale_status_t formula(const struct model_unified *in, double interval_s, double *out,
			     struct error *err)
{
	double left_hz = (1 - in->coverage) * in->due_rate_hz;
	double waste = in->task_waste + in->ckpt_s / interval_s + left_hz * interval_s / 2 +
		       left_hz * in->restart_s;

	if (waste >= 1)
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "by the formula the job never finishes: it wastes %.3g of its time", waste);
	*out = in->work_s / (1 - waste);
	return HALE_OK;
}

hale_status_t model_unified_play(const struct model_unified *in, double interval_s, double shape,
				 uint32_t runs, uint64_t seed, struct model_played *out,
				 struct error *err)
{
	struct model_unified_result best;
	struct play p = {.arrivals = {1 / in->due_rate_hz, shape},
			 .work_s = in->work_s / (1 - in->task_waste),
			 .ckpt_s = in->ckpt_s,
			 .restart_s = in->restart_s,
			 .coverage = in->coverage};
	struct model_played r = {0};
	double mean = 0, squares = 0; /* Welford's */

	if (model_unified(in, &best, err))
		return HALE_ERR_ARGUMENT;
	r.interval_s = fmin(interval_s > 0 ? interval_s : best.unified_interval_s, p.work_s);
	p.interval_s = r.interval_s;
	if (check_play(in, &p, runs, err) || formula(in, r.interval_s, &r.formula_s, err))
		return HALE_ERR_ARGUMENT;
	for (uint32_t i = 0; i < runs; i++) {
		struct sim_random random;
		double time_s, failures = 0, off;

		sim_random_init(&random, seed, i, 0);
		time_s = play_once(&p, &random, &failures);
		if (isinf(time_s))
			return error_set(err, HALE_ERR_ARGUMENT,
					 "the job never finishes: after %g failures it was still "
					 "not done",
					 FAILURES_MAX);
		off = time_s - mean;
		mean += off / (i + 1);
		squares += off * (time_s - mean);
		r.spread += fabs(time_s - r.formula_s) / r.formula_s / runs;
		r.failures += failures / runs;
	}
	r.mean_s = mean;
	r.half_width_s = 1.959964 * sqrt(squares / (runs - 1) / runs);
	r.difference = (mean - r.formula_s) / r.formula_s;
	*out = r;
	return HALE_OK;
}
