/* SPDX-License-Identifier: BSD-3-Clause */
/* Where failures come from: the superposition of the lives of all places ("slots") of a job.
 *
 * With laws: all first lives begin together at the same age a, so that at time t each has the same
 * hazard h(a + t). Give every slot a Poisson process of that intensity, and take a slot's first
 * point as its first failure: that is a life of the law. The sum over all slots is one Poisson
 * process of intensity slots * h, whose points are drawn one after the other by inverting the
 * cumulative hazard, and strike a uniformly chosen slot; a point that strikes a slot whose first
 * life is over means nothing. So the next failure among millions costs O(1) and no memory per slot
 * but a byte. Lives that begin later (replaced nodes) are drawn one by one and wait in a heap,
 * which is small: only those that end before the limit are in it. For the exponential law a later
 * life is like a first one, and the heap stays empty. All of this is exact. */
#ifndef HALE_MODEL_SIM_SOURCE_H
#define HALE_MODEL_SIM_SOURCE_H

#include "model/sim/sim.h"
#include "model/sim/sim_random.h"

struct sim_strike {
	double time_s;
	uint32_t slot;
	bool soft;
};

struct sim_source {
	const struct sim_failures *law;
	uint32_t slots;
	double limit_s; /* later failures interest nobody */
	bool memoryless;
	double scale_s, inverse_shape;
	struct sim_random times, kinds;
	uint8_t *state;	      /* by slot: see the .c */
	uint32_t first_lives; /* that still go on; unused if memoryless */
	uint32_t *touched;
	size_t touched_count, touched_cap;
	/* the next point of the first lives' process */
	double hazard, point_s;
	uint32_t point_slot;
	/* ends of later lives: a 4-ary heap */
	double *end_s;
	uint32_t *end_slot;
	size_t ends, ends_cap;
	/* a trace: its next event, and what to add to its times */
	size_t event;
	double shift_s;
	bool no_memory;
};

/* False when there is no memory. law must outlive the source. */
bool sim_source_init(struct sim_source *s, const struct sim_failures *law, uint32_t slots,
		     double limit_s);
void sim_source_fini(struct sim_source *s);

/* Everything as new, for that run. */
void sim_source_start(struct sim_source *s, uint64_t seed, uint64_t run);

/* When something may fail next; INFINITY: never again. */
double sim_source_next_s(const struct sim_source *s);

/* Takes that. False if it strikes a slot where nothing lives. Otherwise the slot is down until it
 * is renewed. */
bool sim_source_take(struct sim_source *s, struct sim_strike *strike);

/* A new life begins in a slot that is down. */
void sim_source_renew(struct sim_source *s, uint32_t slot, double now_s);

#endif
