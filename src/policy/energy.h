/* SPDX-License-Identifier: BSD-3-Clause */
/* What the cores of a job with shadows draw, after equation (1) of the proposal for lazy shadowing:
 * a core at speed s draws static + (1 - static) s^3 of its power at full speed. A core on which
 * several processes take turns runs at full speed while one of them does, and stands still
 * otherwise. */
#ifndef HALE_POLICY_ENERGY_H
#define HALE_POLICY_ENERGY_H

/* Static power, part of the whole at full speed, of the proposal's table 4. */
#define ENERGY_STATIC 0.6

/* Cores and for how long, in core seconds: switched on; at full speed. */
struct energy_cores {
	double on_s, busy_s;
};

/* In seconds of one core at full power. */
double energy_of(const struct energy_cores *c, double static_part);
/* What a counter has gained that begins anew at max (0: it does not). */
double energy_gained(double before, double now, double max);

#endif
