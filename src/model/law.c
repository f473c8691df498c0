/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "model/check.h"
#include "model/law.h"
#include "model/quad.h"
#include "model/quantity.h"

hale_status_t model_law_check(const struct model_law *law, struct error *err)
{
	if (check_above_0("the mean time to failure (s)", law->mean_s, err) ||
	    check_range("the shape of the Weibull law", law->shape, 0.05, 100, err))
		return HALE_ERR_ARGUMENT;
	return HALE_OK;
}

static hale_status_t parse_part(const char *part, struct model_law *law, struct error *err)
{
	if (strncmp(part, "shape=", 6) == 0)
		return model_quantity_parse(part + 6, MODEL_NUMBER, &law->shape, err);
	if (strncmp(part, "mttf=", 5) == 0 || strncmp(part, "mtbf=", 5) == 0)
		return model_quantity_parse(part + 5, MODEL_TIME_S, &law->mean_s, err);
	return error_set(err, HALE_ERR_ARGUMENT,
			 "'%s' is no part of a failure law; there are shape= and mttf=", part);
}

hale_status_t model_law_parse(const char *text, struct model_law *law, struct error *err)
{
	struct model_law l = {.mean_s = -1, .shape = 1};
	char parts[128], *rest = parts, *part;
	bool weibull = strncmp(text, "weibull:", 8) == 0;

	if (!weibull && strncmp(text, "exp:", 4) != 0) {
		if (model_quantity_parse(text, MODEL_TIME_S, &l.mean_s, err))
			return error_set(err, HALE_ERR_ARGUMENT,
					 "'%s' is no failure law; write 25y, exp:mttf=25y or "
					 "weibull:shape=0.7,mttf=25y",
					 text);
	} else {
		if (snprintf(parts, sizeof(parts), "%s", strchr(text, ':') + 1) >=
		    (int)sizeof(parts))
			return error_set(err, HALE_ERR_ARGUMENT, "the failure law is too long");
		while ((part = strsep(&rest, ",")))
			if (parse_part(part, &l, err))
				return HALE_ERR_ARGUMENT;
		if (l.mean_s < 0)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "the failure law '%s' lacks mttf=TIME", text);
		if (!weibull && l.shape != 1)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "the exponential law has no shape; write weibull:%s",
					 strchr(text, ':') + 1);
	}
	if (model_law_check(&l, err))
		return HALE_ERR_ARGUMENT;
	*law = l;
	return HALE_OK;
}

double model_law_scale_s(const struct model_law *law)
{
	return law->shape == 1 ? law->mean_s : law->mean_s / tgamma(1 + 1 / law->shape);
}

/* -log of the survival: (t / scale)^shape */
static double hazard(const struct model_law *law, double t_s)
{
	double x = t_s / model_law_scale_s(law);

	if (!(t_s > 0))
		return 0;
	return law->shape == 1 ? x : pow(x, law->shape);
}

double model_law_survival(const struct model_law *law, double t_s)
{
	return exp(-hazard(law, t_s));
}

double model_law_failed(const struct model_law *law, double t_s)
{
	return -expm1(-hazard(law, t_s));
}

double model_law_density_hz(const struct model_law *law, double t_s)
{
	return law->shape * hazard(law, t_s) / t_s * model_law_survival(law, t_s);
}

/* Over u with t = end u^power the integrand is smooth at 0 also for shapes below 1. */
struct uptime {
	const struct model_law *law;
	double end_s, power;
};

static double uptime_integrand(double u, const void *context)
{
	const struct uptime *w = context;

	return w->power * pow(u, w->power - 1) *
	       model_law_survival(w->law, w->end_s * pow(u, w->power));
}

double model_law_uptime_s(const struct model_law *law, double t_s)
{
	struct uptime w = {law, t_s, fmax(1, ceil(2 / law->shape))};
	double far = model_law_scale_s(law) * pow(745, 1 / law->shape); /* exp(-745) = 0 */

	if (!(t_s > 0))
		return 0;
	if (isinf(law->mean_s))
		return t_s;
	if (law->shape == 1)
		return -law->mean_s * expm1(-t_s / law->mean_s);
	if (t_s >= far)
		return law->mean_s;
	return w.end_s * model_integrate(uptime_integrand, &w, 0, 1);
}

double model_law_draw_s(const struct model_law *law, double u)
{
	double x = -log(u);

	return model_law_scale_s(law) * (law->shape == 1 ? x : pow(x, 1 / law->shape));
}
