/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stddef.h>
#include "model/check.h"
#include "model/contest.h"
#include "model/interval.h"
#include "model/quad.h"

static hale_status_t check_contest(const struct model_contest *in, struct error *err)
{
	if (model_law_check(&in->law, err) ||
	    check_positive("the job's time (s)", in->work_s, err) ||
	    check_range("the number of sockets", in->plain_sockets, 1, 1e12, err) ||
	    check_positive("the power of a socket (W)", in->socket_w, err) ||
	    check_fraction("the static part of power", in->static_part, err) ||
	    check_range("the exponent of dynamic power", in->exponent, 1, 4, err) ||
	    check_positive("the checkpoint time (s)", in->ckpt_s, err) ||
	    check_not_negative("the restart time (s)", in->restart_s, err) ||
	    check_not_negative("the power of input and output", in->io_part, err) ||
	    check_range("the stretched speed", in->stretched_speed, 1e-3, 1, err) ||
	    check_range("the shadow's speed", in->shadow_speed, -1, 1, err))
		return HALE_ERR_ARGUMENT;
	return HALE_OK;
}

/* 003 eq. 3 and 4 */
static hale_status_t checkpointing(const struct model_contest *in, struct model_contest_result *out,
				   struct error *err)
{
	double mtbf_s = in->law.mean_s / in->plain_sockets, interval_s, io_s;

	if (model_daly_s(in->ckpt_s, mtbf_s, &interval_s, err))
		return HALE_ERR_ARGUMENT;
	interval_s = fmin(interval_s, in->work_s);
	if (model_daly_wall_s(in->work_s, interval_s, in->ckpt_s, in->restart_s, mtbf_s,
			      &out->time_s, err))
		return HALE_ERR_ARGUMENT;
	io_s = in->ckpt_s * in->work_s / interval_s + in->restart_s * out->time_s / mtbf_s;
	out->sockets = out->main_sockets = in->plain_sockets;
	out->main_speed = 1;
	out->shadow_speed = 0;
	out->energy_j = in->plain_sockets * in->socket_w * out->time_s;
	if (in->io_part > 0) /* where the time is infinite, nothing times it would be no number */
		out->energy_j +=
		    in->plain_sockets * in->socket_w * in->io_part * (1 - in->static_part) * io_s;
	return HALE_OK;
}

/* Pairs that the budget feeds, and the work that falls to each. */
static void share(const struct model_contest *in, struct model_shadow *s,
		  struct model_contest_result *out)
{
	double dynamic = 1 - in->static_part;
	double pair = 2 * in->static_part + dynamic * (pow(s->main_speed, s->exponent) +
						       pow(s->shadow_speed, s->exponent));

	out->main_sockets = in->plain_sockets / pair;
	out->sockets = 2 * out->main_sockets;
	s->pairs = fmax(1, floor(out->main_sockets));
	s->work_s = in->work_s * in->plain_sockets / out->main_sockets;
}

/* Each pair by itself: its best speed depends on its work, that on the number of pairs, that on the
 * speed. By repetition, which converges fast because a lazy shadow draws little. */
static hale_status_t pair_speed(const struct model_contest *in, struct model_shadow *s,
				struct model_contest_result *out, struct error *err)
{
	s->shadow_speed = 0;
	share(in, s, out);
	for (int i = 0; i < 30; i++) {
		double speed;

		if (model_shadow_best_speed(s, MODEL_GOAL_PAIR_ENERGY, &speed, err))
			return HALE_ERR_ARGUMENT;
		if (fabs(speed - s->shadow_speed) < 1e-9)
			break;
		s->shadow_speed = speed;
		share(in, s, out);
	}
	return HALE_OK;
}

/* What the whole job costs if its shadows run at this speed. */
static double job_cost(double speed, const void *context)
{
	struct model_contest c = *(const struct model_contest *)context;
	struct model_contest_result r;

	c.shadow_speed = speed;
	if (model_contest(&c, MODEL_SHADOWING, &r, NULL))
		return INFINITY;
	return (c.goal == MODEL_GOAL_TIME ? 1 : r.energy_j) *
	       (c.goal == MODEL_GOAL_ENERGY ? 1 : r.time_s);
}

static hale_status_t choose_speed(const struct model_contest *in, struct model_shadow *s,
				  struct model_contest_result *out, struct error *err)
{
	if (in->shadow_speed < 0 && in->goal == MODEL_GOAL_PAIR_ENERGY)
		return pair_speed(in, s, out, err);
	s->shadow_speed =
	    in->shadow_speed >= 0 ? in->shadow_speed : model_minimise(job_cost, in, 0, 1);
	share(in, s, out);
	return HALE_OK;
}

static hale_status_t pairs(const struct model_contest *in, enum model_method method,
			   struct model_contest_result *out, struct error *err)
{
	struct model_shadow s = {.law = in->law,
				 .static_part = in->static_part,
				 .exponent = in->exponent,
				 .socket_w = in->socket_w};
	struct model_shadow_result r;

	s.main_speed = method == MODEL_STRETCHED ? in->stretched_speed : 1;
	s.after_speed = s.main_speed;
	if (method == MODEL_SHADOWING) {
		if (choose_speed(in, &s, out, err))
			return HALE_ERR_ARGUMENT;
	} else {
		s.shadow_speed = s.main_speed;
		share(in, &s, out);
	}
	if (model_shadow(&s, &r, err))
		return HALE_ERR_ARGUMENT;
	out->main_speed = s.main_speed;
	out->shadow_speed = s.shadow_speed;
	out->time_s = in->pairs_alone ? r.pair_time_s : r.expected_time_s;
	out->energy_j = in->pairs_alone ? r.pair_energy_j * out->main_sockets : r.expected_energy_j;
	return HALE_OK;
}

hale_status_t model_contest(const struct model_contest *in, enum model_method method,
			    struct model_contest_result *out, struct error *err)
{
	struct model_contest_result r;

	if (check_contest(in, err))
		return HALE_ERR_ARGUMENT;
	if (method == MODEL_CHECKPOINTING ? checkpointing(in, &r, err) : pairs(in, method, &r, err))
		return HALE_ERR_ARGUMENT;
	*out = r;
	return HALE_OK;
}

/* log(checkpointing's cost / the method's): above 0 where the method wins */
static double lead(struct model_contest in, enum model_method method, bool energy, double sockets)
{
	struct model_contest_result c, m;

	in.plain_sockets = sockets;
	if (model_contest(&in, MODEL_CHECKPOINTING, &c, NULL) ||
	    model_contest(&in, method, &m, NULL))
		return NAN;
	return energy ? log(c.energy_j) - log(m.energy_j) : log(c.time_s) - log(m.time_s);
}

hale_status_t model_break_even(const struct model_contest *in, enum model_method method,
			       bool energy, double low, double high, double *plain_sockets,
			       struct error *err)
{
	double l = low, h = high;

	if (check_contest(in, err) ||
	    check_range("the lower number of sockets", low, 1, 1e12, err) ||
	    check_range("the higher number of sockets", high, low, 1e12, err))
		return HALE_ERR_ARGUMENT;
	if (!(lead(*in, method, energy, low) < 0 && lead(*in, method, energy, high) > 0))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the method does not overtake checkpointing between %.0f and %.0f "
				 "sockets",
				 low, high);
	while (h - l > 0.5) {
		double middle = (l + h) / 2;

		if (lead(*in, method, energy, middle) < 0)
			l = middle;
		else
			h = middle;
	}
	*plain_sockets = round(h);
	return HALE_OK;
}

/* ∫0..J a Λ e^(-Λa) da = (1 - (1 + x) e^-x) / Λ with x = ΛJ; where that cancels, its series. */
static double mean_age_s(double rate_hz, double x)
{
	if (x < 1e-3)
		return x * x * (0.5 - x / 3 + x * x / 8) / rate_hz;
	return isinf(x) ? 1 / rate_hz : (-expm1(-x) - x * exp(-x)) / rate_hz;
}

hale_status_t model_jumping(const struct model_jumping *in, struct model_jumping_result *out,
			    struct error *err)
{
	double rate_hz, x, undisturbed, cycle_s, wait_s, forced_s, cycles;

	if (check_positive("the work (s)", in->work_s, err) ||
	    check_whole("the number of pairs", in->pairs, 1, 1e12, err) ||
	    check_positive("the mean time to failure of a socket (s)", in->socket_mttf_s, err) ||
	    check_fraction("the shadow's speed", in->shadow_speed, err) ||
	    check_above_0("the time between forced jumps (s)", in->jump_every_s, err) ||
	    check_not_negative("the time of a forced jump (s)", in->jump_s, err))
		return HALE_ERR_ARGUMENT;
	/* A cycle lasts from one alignment to the next: to a failure, or to jump_every_s = J.
	 * Its mean progress is ∫0..J e^(-Λa) da, its mean wait (1-σ) ∫0..J a Λ e^(-Λa) da. */
	rate_hz = in->pairs / in->socket_mttf_s;
	x = rate_hz * in->jump_every_s;
	undisturbed = exp(-x);
	cycle_s = -expm1(-x) / rate_hz;
	wait_s = (1 - in->shadow_speed) * mean_age_s(rate_hz, x);
	forced_s = undisturbed * in->jump_s;
	cycles = in->work_s / cycle_s;
	out->failures = cycles * -expm1(-x);
	out->waiting_s = cycles * wait_s;
	out->jumping_s = cycles * forced_s;
	out->time_s = in->work_s + out->waiting_s + out->jumping_s;
	out->best_every_s = in->shadow_speed < 1
				? sqrt(2 * in->jump_s / (rate_hz * (1 - in->shadow_speed)))
				: INFINITY;
	return HALE_OK;
}
