// SPDX-License-Identifier: BSD-3-Clause
/* What any part of the head may ask of a job's shadows. */
#include "base/base.h"
#include "head/head.h"

const char *shadows_role(const struct head *h, uint32_t process)
{
	uint32_t rank = living_rank_of(process, h->view.nranks);

	return living_leader(&h->view, rank) == (int)living_slot_of(process, h->view.nranks)
		   ? "main"
		   : "shadow";
}

static bool all_lost_have_ended(const struct head *h)
{
	for (uint32_t p = 0; p < h->nranks; p++)
		if (h->view.lost[p] && !h->ranks[p].ended)
			return false;
	return true;
}

bool shadows_may_return(const struct head *h, uint32_t process)
{
	uint32_t after = (uint32_t)h->o->rejuvenate_after;

	if (!h->shadows.of)
		return true;
	return !h->shadows.over && all_lost_have_ended(h) &&
	       (h->shadows.of[process].jumps || (after > 0 && h->shadows.failures >= after));
}

void shadows_print(const struct head *h, uint32_t process, struct json_out *j)
{
	const struct head_shadow *s = &h->shadows.of[process];
	uint32_t set = h->shadows.layout.set_of[living_rank_of(process, h->view.nranks)];

	json_string(j, "role", shadows_role(h, process));
	json_uint(j, "set", set);
	json_bool(j, "vulnerable", shadow_set_is_vulnerable(&h->shadows.layout, &h->view, set));
	if (h->view.lost[process] || s->said_at == 0 || s->promoted)
		return;
	json_uint(j, "lag_bytes", s->log_bytes);
	if (s->said_at > s->first_at)
		json_double(j, "rate",
			    (double)(s->cpu_ns - s->cpu_first_ns) * 1e-9 / (s->said_at - s->first_at));
}
