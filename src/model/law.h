/* SPDX-License-Identifier: BSD-3-Clause */
/* When things fail: the distribution of the time from new to failure of one node, socket, rank. */
#ifndef HALE_MODEL_LAW_H
#define HALE_MODEL_LAW_H

#include "base/error.h"

/* A Weibull law by its mean, the number that people know; shape 1 is the exponential law (constant
 * failure rate), below 1 early failures dominate, above 1 wear. */
struct model_law {
	double mean_s; /* > 0; INFINITY: never fails */
	double shape;  /* > 0 */
};

/* "25y", "exp:mttf=50y", "weibull:shape=0.7,mttf=50y" (mtbf= is the same). */
hale_status_t model_law_parse(const char *text, struct model_law *law, struct error *err);
hale_status_t model_law_check(const struct model_law *law, struct error *err);

/* The Weibull scale that gives this mean: mean / Γ(1 + 1/shape). */
double model_law_scale_s(const struct model_law *law);
/* P(X > t). */
double model_law_survival(const struct model_law *law, double t_s);
/* P(X <= t), accurate where it is tiny. */
double model_law_failed(const struct model_law *law, double t_s);
/* Density of X at t > 0, per second. */
double model_law_density_hz(const struct model_law *law, double t_s);
/* E[min(X, t)] = ∫0..t P(X > u) du: the time that something is up within a window of t. */
double model_law_uptime_s(const struct model_law *law, double t_s);
/* The X for which P(X > x) = u; u uniform in (0, 1]: the inverse transform for simulations. */
double model_law_draw_s(const struct model_law *law, double u);

#endif
