/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of ranks as users write them: "0-3,7", or "none". */
#ifndef HALE_LAUNCH_RANK_LIST_H
#define HALE_LAUNCH_RANK_LIST_H

#include <stdint.h>
#include "base/error.h"

/* listed[r] = 1 for each rank r < nranks of the list, 0 for others; NULL: only looks whether it is
 * one. HALE_ERR_ARGUMENT with a sentence: it is none, or names a rank that isn't there. */
hale_status_t rank_list_parse(const char *text, uint32_t nranks, unsigned char *listed,
			      struct error *err);

#endif
