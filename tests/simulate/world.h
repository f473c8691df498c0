/* SPDX-License-Identifier: BSD-3-Clause */
/* A job, what happens to it, and what must hold (docs/simulation.md). */
#ifndef HALE_SIMULATE_WORLD_H
#define HALE_SIMULATE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

struct world_result {
	bool good;
	char failure[512]; /* "": good */
	int exit_status;   /* of the job */
	uint32_t restarts, faults;
	uint64_t steps; /* of the scheduler */
	double seconds; /* simulated */
	char *story;	/* malloc'ed; the caller's */
};

/* Only faults of these kinds, by their names with commas between ("stop-head,kill-rank"); NULL: of
 * all. False: there is no such kind. */
bool world_choose(const char *kinds);

/* As schedules were drawn before there were swarms: a schedule of an older seed is what it was. */
void world_no_swarm(void);

/* Runs the schedule of that seed to its end. */
struct world_result world_run(uint64_t seed, bool verbose);

#endif
