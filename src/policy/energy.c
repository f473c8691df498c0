// SPDX-License-Identifier: BSD-3-Clause
#include "policy/energy.h"

double energy_of(const struct energy_cores *c, double static_part)
{
	return static_part * c->on_s + (1 - static_part) * c->busy_s;
}

double energy_gained(double before, double now, double max)
{
	if (now >= before)
		return now - before;
	return max > before ? max - before + now : 0;
}
