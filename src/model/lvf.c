/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/check.h"
#include "model/lvf.h"

hale_status_t model_lvf(double live_s, double bytes, double *byte_seconds, struct error *err)
{
	if (check_not_negative("the live range (s)", live_s, err) ||
	    check_not_negative("the size (bytes)", bytes, err))
		return HALE_ERR_ARGUMENT;
	*byte_seconds = live_s * bytes;
	return HALE_OK;
}

hale_status_t model_lvf_errors(double byte_seconds, double fit_per_mbit, double *errors,
			       struct error *err)
{
	if (check_not_negative("the live vulnerability factor (byte-seconds)", byte_seconds, err) ||
	    check_not_negative("the failure rate (FIT per Mbit)", fit_per_mbit, err))
		return HALE_ERR_ARGUMENT;
	*errors = byte_seconds * 8 / 0x1p20 * fit_per_mbit / (1e9 * 3600);
	return HALE_OK;
}
