/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/plan/pin.h"

void pin_share(uint32_t cores, uint32_t nranks, uint32_t rank, uint32_t *first, uint32_t *count)
{
	*first = (uint32_t)((uint64_t)cores * rank / nranks);
	*count = (uint32_t)((uint64_t)cores * (rank + 1) / nranks) - *first;
}
