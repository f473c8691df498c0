// SPDX-License-Identifier: BSD-3-Clause
/* What any part of the head may ask of a job's shadows. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/clock.h"
#include "head/head.h"

void shadows_begin(struct head *h, bool bare)
{
	if (h->shadows.of)
		memset(h->shadows.of, 0, h->nranks * sizeof(*h->shadows.of));
	h->shadows.failures = 0;
	h->shadows.over = false;
	h->shadows.bare = bare;
	h->shadows.unmergeable = false;
}

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
	       (h->shadows.bare || (after > 0 && h->shadows.failures >= after));
}

uint32_t shadows_jumper(const struct head *h, uint32_t process)
{
	uint32_t rank = living_rank_of(process, h->view.nranks);
	int leader = living_leader(&h->view, rank);

	if (!h->shadows.of || h->shadows.over || !h->view.lost[process] ||
	    !h->ranks[process].ended || leader < 0 ||
	    living_slot_of(process, h->view.nranks) < (uint32_t)leader)
		return LIVING_NOWHERE;
	for (uint32_t s = (uint32_t)leader + 1; s < h->degree; s++) {
		uint32_t shadow = living_process(&h->view, rank, s);

		if (!h->view.lost[shadow] && h->shadows.of[shadow].jumps)
			return shadow;
	}
	return LIVING_NOWHERE;
}

bool shadows_is_room(const struct head *h, uint32_t process)
{
	uint32_t n = h->view.nranks;

	if (!h->shadows.of || !h->view.lost[process])
		return false;
	for (uint32_t p = living_rank_of(process, n); p < process; p += n)
		if (h->view.lost[p])
			return true;
	return !replicas_is_wanted(h, process);
}

bool shadows_any_jumps(const struct head *h)
{
	for (uint32_t p = 0; h->shadows.of && p < h->nranks; p++)
		if (!h->view.lost[p] && h->shadows.of[p].jumps)
			return true;
	return false;
}

/* HALE_JUMP_ALONE=0: all stop, as they do after failures; for comparing. Another head would not know
 * which of the two shadows that live for a moment is the new one. */
bool shadows_jumps_alone(const struct head *h, uint32_t process)
{
	const char *wanted = getenv("HALE_JUMP_ALONE"), *why = h->shadows.of[process].jumps;

	return why && strcmp(why, "log") == 0 && h->o->head_grace == 0 && !(wanted && strcmp(wanted, "0") == 0);
}

void shadows_stop(struct head *h, uint32_t process)
{
	h->shadows.of[process].stopped = true;
	living_lose(&h->view, process);
	h->moves.clones.died_at[process] = clock_seconds();
	h->moves.clones.homes[process] = h->node_set.placement.node_of[process];
	node_set_echo_lost(&h->node_set, process);
	node_set_signal(&h->node_set, process, SIGKILL);
}

void shadows_lives(struct head *h, uint32_t process)
{
	if (h->shadows.of)
		h->shadows.of[process].stopped = false;
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
			    (double)(s->cpu_ns - s->cpu_first_ns) * 1e-9 /
				(s->said_at - s->first_at));
}
