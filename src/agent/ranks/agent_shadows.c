// SPDX-License-Identifier: BSD-3-Clause
/* Cores of a job with shadows: the mains of a set have a core each, its shadows one together. */
#include "agent/agent_private.h"
#include "node/living.h"
#include "policy/shadows.h"

uint32_t agent_processes(const struct agent *a)
{
	return a->setup.shadows ? a->setup.nranks / a->setup.degree * LIVING_SHADOW_DEGREE
				: a->setup.nranks;
}

static bool unit_counts(const struct agent *a, uint32_t process)
{
	return a->setup.flags & SETUP_TOGETHER || agent_has(a, process);
}

/* A unit is a main, or the shadows of a set, in whichever slots. */
static bool shadows_count(const struct agent *a, uint32_t set)
{
	uint32_t n = a->setup.nranks / a->setup.degree, first = set * a->setup.shadows;

	for (uint32_t r = first; r < n && r < first + a->setup.shadows; r++)
		for (uint32_t p = n + r; p < a->setup.nranks; p += n)
			if (unit_counts(a, p))
				return true;
	return false;
}

/* Of the first so many mains, and of the shadows of the first so many sets. */
static uint32_t units_before(const struct agent *a, uint32_t mains, uint32_t sets)
{
	uint32_t units = 0;

	for (uint32_t p = 0; p < mains; p++)
		units += unit_counts(a, p);
	for (uint32_t set = 0; set < sets; set++)
		units += shadows_count(a, set);
	return units;
}

uint32_t agent_unit_of(const struct agent *a, uint32_t process)
{
	uint32_t n = a->setup.nranks / a->setup.degree;

	return process < n ? units_before(a, process, 0)
			   : units_before(a, n, process % n / a->setup.shadows);
}

uint32_t agent_units(const struct agent *a)
{
	uint32_t n = a->setup.nranks / a->setup.degree;

	if (!a->setup.shadows)
		return a->setup.flags & SETUP_TOGETHER ? a->setup.nranks : a->view.here;
	return units_before(a, n, (n + a->setup.shadows - 1) / a->setup.shadows);
}

uint32_t agent_shadow_rate(const struct agent *a)
{
	uint32_t units = agent_units(a);

	if (a->setup.shadow_rate > 0 || !a->setup.shadows || units == 0)
		return a->setup.shadow_rate;
	return shadow_rate(units, a->setup.shadows,
			   a->machine.pin.cores ? a->machine.pin.cores : 1);
}
