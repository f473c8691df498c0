/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "model/check.h"
#include "model/interval.h"

static hale_status_t check_ckpt(double ckpt_s, double mtbf_s, struct error *err)
{
	if (check_not_negative("the checkpoint time (s)", ckpt_s, err) ||
	    check_above_0("the mean time between failures (s)", mtbf_s, err))
		return HALE_ERR_ARGUMENT;
	return HALE_OK;
}

hale_status_t model_young_s(double ckpt_s, double mtbf_s, double *interval_s, struct error *err)
{
	if (check_ckpt(ckpt_s, mtbf_s, err))
		return HALE_ERR_ARGUMENT;
	*interval_s = ckpt_s == 0 ? 0 : sqrt(2 * ckpt_s * mtbf_s);
	return HALE_OK;
}

hale_status_t model_daly_s(double ckpt_s, double mtbf_s, double *interval_s, struct error *err)
{
	double q = ckpt_s / (2 * mtbf_s);

	if (check_ckpt(ckpt_s, mtbf_s, err))
		return HALE_ERR_ARGUMENT;
	if (ckpt_s == 0)
		*interval_s = 0;
	else if (ckpt_s < 2 * mtbf_s)
		*interval_s = sqrt(2 * ckpt_s * mtbf_s) * (1 + sqrt(q) / 3 + q / 9) - ckpt_s;
	else
		*interval_s = mtbf_s;
	return HALE_OK;
}

/* 1 + W(-exp(-1 - x)), x >= 0, on the principal branch: the root y in [0, 1) of
 * y + log(1 - y) = -x, by Newton from a point on its right, where the function is concave. */
static double lambert_above_branch(double x)
{
	double y = fmin(sqrt(2 * x), 1 - exp(-1 - x));

	if (x == 0)
		return 0;
	if (x > 36) /* 1 - y is less than what a double can tell from 1 */
		return 1;
	for (int i = 0; i < 60; i++) {
		double step = (y + log1p(-y) + x) * (1 - y) / y;

		y += step;
		if (fabs(step) <= 1e-16 * y)
			break;
	}
	return y;
}

hale_status_t model_best_interval_s(double ckpt_s, double mtbf_s, double *interval_s,
				    struct error *err)
{
	if (check_ckpt(ckpt_s, mtbf_s, err))
		return HALE_ERR_ARGUMENT;
	if (isinf(mtbf_s))
		*interval_s = ckpt_s == 0 ? 0 : INFINITY;
	else
		*interval_s = mtbf_s * lambert_above_branch(ckpt_s / mtbf_s);
	return HALE_OK;
}

hale_status_t model_daly_wall_s(double work_s, double interval_s, double ckpt_s, double restart_s,
				double mtbf_s, double *wall_s, struct error *err)
{
	double segment_s = interval_s + ckpt_s, segments;

	if (check_ckpt(ckpt_s, mtbf_s, err) || check_positive("the work (s)", work_s, err) ||
	    check_positive("the checkpoint interval (s)", interval_s, err) ||
	    check_not_negative("the restart time (s)", restart_s, err))
		return HALE_ERR_ARGUMENT;
	if (interval_s > work_s)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the checkpoint interval (%g s) is longer than the work (%g s)",
				 interval_s, work_s);
	segments = work_s / interval_s - ckpt_s / segment_s;
	if (isinf(mtbf_s))
		*wall_s = segment_s * segments;
	else if (segment_s / mtbf_s > 700 || restart_s / mtbf_s > 700)
		*wall_s = INFINITY; /* beyond what doubles hold */
	else
		*wall_s = mtbf_s * exp(restart_s / mtbf_s) * expm1(segment_s / mtbf_s) * segments;
	return HALE_OK;
}

hale_status_t model_first_order_waste(double interval_s, double ckpt_s, double restart_s,
				      double mtbf_s, double *fraction, struct error *err)
{
	if (check_ckpt(ckpt_s, mtbf_s, err) ||
	    check_positive("the checkpoint interval (s)", interval_s, err) ||
	    check_not_negative("the restart time (s)", restart_s, err))
		return HALE_ERR_ARGUMENT;
	*fraction = ckpt_s / interval_s + interval_s / (2 * mtbf_s) + restart_s / mtbf_s;
	return HALE_OK;
}

hale_status_t model_system_mtbf_s(double each_mtbf_s, double count, double *mtbf_s,
				  struct error *err)
{
	if (check_above_0("the mean time between failures of one (s)", each_mtbf_s, err) ||
	    check_positive("their number", count, err))
		return HALE_ERR_ARGUMENT;
	*mtbf_s = each_mtbf_s / count;
	return HALE_OK;
}
