// SPDX-License-Identifier: BSD-3-Clause
/* Cores of a job with shadows: the mains of a set have a core each, its shadows one together. */
#include "agent/agent_private.h"
#include "node/living.h"
#include "policy/shadows.h"

static bool unit_counts(const struct agent *a, uint32_t process)
{
	return a->setup.flags & SETUP_TOGETHER || agent_has(a, process);
}

static uint32_t unit_key(const struct agent *a, uint32_t process)
{
	uint32_t n = a->setup.nranks / a->setup.degree;

	return process < n ? process : n + (process - n) / a->setup.shadows;
}

uint32_t agent_unit_of(const struct agent *a, uint32_t process)
{
	uint32_t unit = 0, last = UINT32_MAX, mine = unit_key(a, process);

	for (uint32_t p = 0; p < a->setup.nranks; p++) {
		uint32_t key = unit_key(a, p);

		if (key >= mine)
			break;
		if (!unit_counts(a, p) || key == last)
			continue;
		last = key;
		unit++;
	}
	return unit;
}

uint32_t agent_units(const struct agent *a)
{
	uint32_t last = UINT32_MAX, units = 0;

	if (!a->setup.shadows)
		return a->setup.flags & SETUP_TOGETHER ? a->setup.nranks : a->view.here;
	for (uint32_t p = 0; p < a->setup.nranks; p++) {
		uint32_t key = unit_key(a, p);

		units += unit_counts(a, p) && key != last;
		if (unit_counts(a, p))
			last = key;
	}
	return units;
}

uint32_t agent_shadow_rate(const struct agent *a)
{
	uint32_t units = agent_units(a);

	if (a->setup.shadow_rate > 0 || !a->setup.shadows || units == 0)
		return a->setup.shadow_rate;
	return shadow_rate(units, a->setup.shadows, a->machine.pin.cores ? a->machine.pin.cores : 1);
}
