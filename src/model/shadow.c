/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stddef.h>
#include "model/check.h"
#include "model/quad.h"
#include "model/shadow.h"

static hale_status_t check_power(double static_part, double exponent, double socket_w,
				 struct error *err)
{
	if (check_fraction("the static part of power", static_part, err) ||
	    check_range("the exponent of dynamic power", exponent, 1, 4, err) ||
	    check_positive("the power of a socket (W)", socket_w, err))
		return HALE_ERR_ARGUMENT;
	return HALE_OK;
}

static hale_status_t check_shadow(const struct model_shadow *in, struct error *err)
{
	if (model_law_check(&in->law, err) ||
	    check_positive("the task's work (s)", in->work_s, err) ||
	    check_whole("the number of pairs", in->pairs, 1, 1e12, err) ||
	    check_range("the main's speed", in->main_speed, 1e-6, 1, err) ||
	    check_range("the shadow's speed after a failure", in->after_speed, 1e-6, 1, err) ||
	    check_power(in->static_part, in->exponent, in->socket_w, err))
		return HALE_ERR_ARGUMENT;
	return check_range("the shadow's speed", in->shadow_speed, 0,
			   fmin(in->main_speed, in->after_speed), err);
}

static double power(const struct model_shadow *in, double speed)
{
	return in->socket_w * (in->static_part + (1 - in->static_part) * pow(speed, in->exponent));
}

/* t_s(t_f) = t_f + (W - σ_s t_f) / σ_a: when the shadow of a main lost at t_f is done. */
static double takeover_s(const struct model_shadow *in, double lost_s)
{
	return lost_s + (in->work_s - in->shadow_speed * lost_s) / in->after_speed;
}

/* log P(one pair is done by t) */
static double log_done(const struct model_shadow *in, double t_s)
{
	double done_s = in->work_s / in->main_speed, first_s = in->work_s / in->after_speed;
	double slope = 1 - in->shadow_speed / in->after_speed, latest_s = -1;

	/* lost up to latest_s means done by now */
	if (t_s >= first_s)
		latest_s = slope > 0 ? fmin(done_s, (t_s - first_s) / slope) : done_s;
	if (t_s < done_s)
		return latest_s >= 0 ? log(model_law_failed(&in->law, latest_s)) : -INFINITY;
	return log1p(model_law_survival(&in->law, done_s) -
		     model_law_survival(&in->law, fmax(0, latest_s)));
}

struct last {
	const struct model_shadow *in;
	double pairs;
};

/* P(not all of some pairs are done by t) */
static double not_all_done(double t_s, const void *context)
{
	const struct last *l = context;
	double p = log_done(l->in, t_s);

	return l->pairs == 0 ? 0 : -expm1(l->pairs * p);
}

/* E[the time at which the last of these pairs is done, but at least floor_s] */
static double expected_last_s(const struct model_shadow *in, double pairs, double floor_s)
{
	struct last l = {in, pairs};
	double done_s = in->work_s / in->main_speed, first_s = in->work_s / in->after_speed;
	double worst_s = fmax(done_s, takeover_s(in, done_s));
	double from_s = fmax(floor_s, fmin(done_s, first_s));
	double between_s = fmin(worst_s, fmax(from_s, fmax(done_s, first_s)));

	return from_s + model_integrate(not_all_done, &l, from_s, between_s) +
	       model_integrate(not_all_done, &l, between_s, worst_s);
}

hale_status_t model_shadow(const struct model_shadow *in, struct model_shadow_result *out,
			   struct error *err)
{
	double done_s, alive, failed, up_s, lost_at_s, catch_up_s, takeover_part_s, last_ok_s,
	    idle_s;
	struct model_shadow_result r;

	if (check_shadow(in, err))
		return HALE_ERR_ARGUMENT;
	done_s = in->work_s / in->main_speed;
	alive = model_law_survival(&in->law, done_s);
	failed = model_law_failed(&in->law, done_s);
	up_s = model_law_uptime_s(&in->law, done_s);
	lost_at_s = up_s - done_s * alive; /* ∫ t f(t) dt up to done_s */
	catch_up_s = (in->work_s * failed - in->shadow_speed * lost_at_s) / in->after_speed;
	takeover_part_s = lost_at_s + catch_up_s; /* ∫ t_s(t) f(t) dt */
	r.done_s = done_s;
	r.worst_s = fmax(done_s, takeover_s(in, done_s));
	r.pair_time_s = done_s * alive + takeover_part_s;
	r.pair_energy_j = (power(in, in->main_speed) + power(in, in->shadow_speed)) * up_s +
			  power(in, in->after_speed) * catch_up_s;
	r.expected_time_s = expected_last_s(in, in->pairs, 0);
	/* Waiting for the last: two sockets where nothing failed, one where something did. Whether
	 * this pair failed and when the last is done are not independent: given that it did not
	 * fail, the last is the last of the others, but not before done_s. */
	last_ok_s = alive * expected_last_s(in, in->pairs - 1, done_s);
	idle_s =
	    2 * (last_ok_s - alive * done_s) + (r.expected_time_s - last_ok_s - takeover_part_s);
	r.expected_energy_j =
	    in->pairs * (r.pair_energy_j + in->static_part * in->socket_w * fmax(0, idle_s));
	*out = r;
	return HALE_OK;
}

struct goal {
	struct model_shadow in;
	enum model_goal goal;
};

static double goal_cost(double speed, const void *context)
{
	const struct goal *g = context;
	struct model_shadow s = g->in;
	struct model_shadow_result r;

	s.shadow_speed = speed;
	if (model_shadow(&s, &r, NULL))
		return INFINITY;
	switch (g->goal) {
	case MODEL_GOAL_PAIR_ENERGY:
		return r.pair_energy_j;
	case MODEL_GOAL_ENERGY:
		return r.expected_energy_j;
	case MODEL_GOAL_TIME:
		return r.expected_time_s;
	case MODEL_GOAL_ENERGY_DELAY:
		break;
	}
	return r.expected_energy_j * r.expected_time_s;
}

/* Of the pair's energy, (P_m + P_s(σ)) A + P_a (B - σ C) / σ_a with A the time up and C = ∫ t f dt,
 * the minimum is where (1 - ρ) e σ^(e-1) A = C P_a / σ_a; e > 1. */
static double best_pair_speed(const struct model_shadow *in, double most)
{
	double done_s = in->work_s / in->main_speed;
	double up_s = model_law_uptime_s(&in->law, done_s);
	double lost_at_s = up_s - done_s * model_law_survival(&in->law, done_s);
	double dynamic = 1 - in->static_part, gain, speed;

	gain = power(in, in->after_speed) / in->socket_w / in->after_speed * lost_at_s / up_s;
	if (dynamic == 0)
		return most;
	speed = pow(gain / (dynamic * in->exponent), 1 / (in->exponent - 1));
	return fmin(speed, most);
}

hale_status_t model_shadow_best_speed(const struct model_shadow *in, enum model_goal goal,
				      double *shadow_speed, struct error *err)
{
	struct goal g = {*in, goal};
	double most;

	g.in.shadow_speed = 0;
	if (check_shadow(&g.in, err))
		return HALE_ERR_ARGUMENT;
	most = fmin(in->main_speed, in->after_speed);
	if (goal == MODEL_GOAL_PAIR_ENERGY && in->exponent > 1)
		*shadow_speed = best_pair_speed(in, most);
	else
		*shadow_speed = model_minimise(goal_cost, &g, 0, most);
	return HALE_OK;
}

hale_status_t model_shadow_collocated(double per_core, double pressure, double *shadow_speed,
				      struct error *err)
{
	if (check_whole("the number of shadows on a core", per_core, 1, 1e6, err) ||
	    check_range("the exponent of memory pressure", pressure, 1, 4, err))
		return HALE_ERR_ARGUMENT;
	*shadow_speed = pow(per_core, -pressure);
	return HALE_OK;
}

hale_status_t model_budget(const struct model_budget *in, struct model_budget_result *out,
			   struct error *err)
{
	double dynamic = 1 - in->static_part, pair;

	if (check_positive("the power budget (W)", in->power_w, err) ||
	    check_power(in->static_part, in->exponent, in->socket_w, err) ||
	    check_range("the main's speed", in->main_speed, 0, 1, err) ||
	    check_range("the shadow's speed", in->shadow_speed, 0, 1, err))
		return HALE_ERR_ARGUMENT;
	pair = 2 * in->static_part +
	       dynamic * (pow(in->main_speed, in->exponent) + pow(in->shadow_speed, in->exponent));
	if (pair <= 0)
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "sockets that draw nothing at speed 0 fit any budget; give a speed");
	/* what is a whole number but for rounding is one */
	out->plain_sockets = floor(in->power_w / in->socket_w * (1 + 1e-12));
	out->main_sockets = floor(in->power_w / in->socket_w / pair * (1 + 1e-12));
	out->sockets = 2 * out->main_sockets;
	return HALE_OK;
}

hale_status_t model_shadow_log(double message_rate, double shadow_speed, double main_speed,
			       double buffer_bytes, double *growth, double *full_s,
			       struct error *err)
{
	if (check_not_negative("the message rate (B/s)", message_rate, err) ||
	    check_range("the main's speed", main_speed, 1e-6, 1, err) ||
	    check_range("the shadow's speed", shadow_speed, 0, main_speed, err) ||
	    check_not_negative("the buffer (bytes)", buffer_bytes, err))
		return HALE_ERR_ARGUMENT;
	*growth = message_rate * (1 - shadow_speed / main_speed);
	*full_s = *growth > 0 ? buffer_bytes / *growth : INFINITY;
	return HALE_OK;
}
