/* SPDX-License-Identifier: BSD-3-Clause */
/* The live vulnerability factor of a variable (000 4.2.2): how long it lives times how large it
 * is. */
#ifndef HALE_MODEL_LVF_H
#define HALE_MODEL_LVF_H

#include "base/error.h"

/* From the first set to the last use; byte-seconds. */
hale_status_t model_lvf(double live_s, double bytes, double *byte_seconds, struct error *err);

/* Expected soft errors that strike it, at fit_per_mbit failures in 10^9 hours and 2^20 bits. */
hale_status_t model_lvf_errors(double byte_seconds, double fit_per_mbit, double *errors,
			       struct error *err);

#endif
