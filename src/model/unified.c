/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "model/check.h"
#include "model/unified.h"

hale_status_t model_task_waste(const struct model_task_level *in, double due_rate_hz,
			       double *fraction, struct error *err)
{
	double waste;

	if (check_fraction("the overlap factor alpha", in->overlap, err) ||
	    check_not_negative("the rate of task checkpoints", in->ckpt, err) ||
	    check_not_negative("the rework of failed tasks", in->rework, err) ||
	    check_range("the sends that are not repeated", in->no_send, 0, in->rework, err) ||
	    check_not_negative("the restarts of failed tasks", in->restart, err) ||
	    check_not_negative("the rate of message logging", in->log, err) ||
	    check_not_negative("the error rate (Hz)", due_rate_hz, err))
		return HALE_ERR_ARGUMENT;
	waste = in->overlap *
		(in->ckpt + due_rate_hz * (in->rework - in->no_send + in->restart) + in->log);
	if (waste > 1)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the task level would take %g of the time, more than all of it",
				 waste);
	*fraction = waste;
	return HALE_OK;
}

static hale_status_t check_unified(const struct model_unified *in, struct error *err)
{
	if (check_not_negative("the checkpoint time (s)", in->ckpt_s, err) ||
	    check_not_negative("the restart time (s)", in->restart_s, err) ||
	    check_not_negative("the error rate (Hz)", in->due_rate_hz, err) ||
	    check_fraction("the coverage", in->coverage, err) ||
	    check_fraction("the cost of the task level", in->task_waste, err) ||
	    check_not_negative("the work (s)", in->work_s, err))
		return HALE_ERR_ARGUMENT;
	return HALE_OK;
}

/* W_sys at its best interval: c/τ + μτ/2 + μr with τ = sqrt(2c/μ) is sqrt(2cμ) + μr. */
static double least_waste(const struct model_unified *in, double rate_hz)
{
	return sqrt(2 * in->ckpt_s * rate_hz) + rate_hz * in->restart_s;
}

static double best_interval_s(double ckpt_s, double rate_hz)
{
	return ckpt_s == 0 ? 0 : sqrt(2 * ckpt_s / rate_hz);
}

static double total_s(double work_s, double waste)
{
	return waste < 1 ? work_s / (1 - waste) : work_s > 0 ? INFINITY : 0;
}

/* S = a sqrt(μ) + b μ - W, a root of it in sqrt(μ). */
static double break_even_hz(const struct model_unified *in)
{
	double a = (1 - sqrt(1 - in->coverage)) * sqrt(2 * in->ckpt_s);
	double b = in->coverage * in->restart_s, root;

	if (in->task_waste == 0)
		return 0;
	if (a == 0 && b == 0)
		return INFINITY;
	/* the form that stays accurate for small b */
	root = 2 * in->task_waste / (a + sqrt(a * a + 4 * b * in->task_waste));
	return root * root;
}

hale_status_t model_unified(const struct model_unified *in, struct model_unified_result *out,
			    struct error *err)
{
	double left_hz = (1 - in->coverage) * in->due_rate_hz;
	struct model_unified_result r;

	if (check_unified(in, err))
		return HALE_ERR_ARGUMENT;
	r.system_interval_s = best_interval_s(in->ckpt_s, in->due_rate_hz);
	r.unified_interval_s = best_interval_s(in->ckpt_s, left_hz);
	r.system_waste = least_waste(in, in->due_rate_hz);
	r.unified_waste = in->task_waste + least_waste(in, left_hz);
	/* eq. 20, not the difference: that would cancel */
	r.score = (1 - sqrt(1 - in->coverage)) * sqrt(2 * in->ckpt_s * in->due_rate_hz) +
		  in->coverage * in->due_rate_hz * in->restart_s - in->task_waste;
	r.break_even_hz = break_even_hz(in);
	r.system_total_s = total_s(in->work_s, r.system_waste);
	r.unified_total_s = total_s(in->work_s, r.unified_waste);
	*out = r;
	return HALE_OK;
}

hale_status_t model_unified_sensitivity(const struct model_unified *in,
					struct model_unified_sensitivity *out, struct error *err)
{
	double chk, res;

	if (check_unified(in, err))
		return HALE_ERR_ARGUMENT;
	chk = sqrt(2 * in->ckpt_s * in->due_rate_hz);
	res = in->due_rate_hz * in->restart_s;
	out->ckpt = (1 - sqrt(1 - in->coverage)) * chk / 2;
	out->restart = in->coverage * res;
	out->due_rate = out->ckpt + out->restart;
	out->coverage = in->coverage * res;
	if (in->coverage > 0 && chk > 0) /* infinitely steep at full coverage */
		out->coverage += in->coverage * chk / (2 * sqrt(1 - in->coverage));
	out->task_waste = -in->task_waste;
	return HALE_OK;
}
