/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/living.h"

int living_leader(const struct living *v, uint32_t rank)
{
	return living_provider(v, rank, 0);
}

int living_provider(const struct living *v, uint32_t from, uint32_t slot)
{
	for (uint32_t i = 0; i < v->degree; i++) {
		uint32_t s = v->shadows ? i : (slot + i) % v->degree;

		if (living_lives(v, from, s) && !living_is_witness(v, from, s))
			return (int)s;
	}
	return LIVING_NONE;
}

bool living_is_witness(const struct living *v, uint32_t rank, uint32_t slot)
{
	return v->audits && slot == LIVING_WITNESS && living_lives(v, rank, slot) &&
	       living_count(v, rank) > 1;
}

uint32_t living_count(const struct living *v, uint32_t rank)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < v->degree; s++)
		n += living_lives(v, rank, s);
	return n;
}

void living_return(struct living *v, uint32_t process)
{
	v->lost[process] = 0;
	v->number++;
}

bool living_lose(struct living *v, uint32_t process)
{
	if (v->lost[process])
		return false;
	v->lost[process] = LIVING_LOST;
	v->number++;
	return true;
}
