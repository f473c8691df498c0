/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/spaces.h"

#include <string.h>
#include <strings.h>
#include "base/base.h"

const char *spaces_other(const char *space, size_t len)
{
	static const char *const pairs[][2] = {{"FTB-IPMI", "FTB.FTB_IPMI"},
					       {"FTB-IB", "FTB.FTB_IB"}};

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		for (int k = 0; k < 2; k++)
			if (strlen(pairs[i][k]) == len && strncasecmp(pairs[i][k], space, len) == 0)
				return pairs[i][!k];
	return NULL;
}
