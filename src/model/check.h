/* SPDX-License-Identifier: BSD-3-Clause */
/* Domain checks of model/: each fills err with a sentence that names the value, and returns
 * HALE_ERR_ARGUMENT, or HALE_OK (0), so that `if (check_a(…) || check_b(…))` reads well. NaN passes
 * none. */
#ifndef HALE_MODEL_CHECK_H
#define HALE_MODEL_CHECK_H

#include "base/error.h"

hale_status_t check_not_negative(const char *what, double v, struct error *err); /* finite */
hale_status_t check_positive(const char *what, double v, struct error *err);	 /* finite */
hale_status_t check_above_0(const char *what, double v, struct error *err);	 /* or INFINITY */
hale_status_t check_fraction(const char *what, double v, struct error *err);
hale_status_t check_range(const char *what, double v, double low, double high, struct error *err);
hale_status_t check_whole(const char *what, double v, double low, double high, struct error *err);

#endif
