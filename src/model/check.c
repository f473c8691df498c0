/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "model/check.h"

hale_status_t check_not_negative(const char *what, double v, struct error *err)
{
	if (v >= 0 && isfinite(v))
		return HALE_OK;
	return error_set(err, HALE_ERR_ARGUMENT, "%s is %g, and must be a number from 0 on", what,
			 v);
}

hale_status_t check_positive(const char *what, double v, struct error *err)
{
	if (v > 0 && isfinite(v))
		return HALE_OK;
	return error_set(err, HALE_ERR_ARGUMENT, "%s is %g, and must be a number above 0", what, v);
}

hale_status_t check_above_0(const char *what, double v, struct error *err)
{
	if (v > 0)
		return HALE_OK;
	return error_set(err, HALE_ERR_ARGUMENT, "%s is %g, and must be above 0", what, v);
}

hale_status_t check_fraction(const char *what, double v, struct error *err)
{
	return check_range(what, v, 0, 1, err);
}

hale_status_t check_range(const char *what, double v, double low, double high, struct error *err)
{
	if (v >= low && v <= high)
		return HALE_OK;
	return error_set(err, HALE_ERR_ARGUMENT, "%s is %g, and must lie between %g and %g", what,
			 v, low, high);
}

hale_status_t check_whole(const char *what, double v, double low, double high, struct error *err)
{
	if (v >= low && v <= high && v == floor(v))
		return HALE_OK;
	return error_set(err, HALE_ERR_ARGUMENT,
			 "%s is %g, and must be a whole number between %g and %g", what, v, low,
			 high);
}
