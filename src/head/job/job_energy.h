/* SPDX-License-Identifier: BSD-3-Clause */
/* Energy of a job with shadows (docs/shadows.md, "Energy"): measured by the counters of this
 * machine's processors (powercap), if it has some and all nodes are on it; modelled in any case. */
#ifndef HALE_HEAD_JOB_ENERGY_H
#define HALE_HEAD_JOB_ENERGY_H

#include <stdbool.h>
#include <stdint.h>
#include "policy/energy.h"

struct head;
struct report_energy;

enum { ENERGY_METERS = 16 };

struct head_energy {
	double last_at; /* 0: not begun */
	struct energy_cores mains, shadows;
	struct energy_meter {
		double last_uj, max_uj;
		char path[128];
	} meter[ENERGY_METERS];
	uint32_t meters;
	double joules;
};

/* From time to time, and before it is told. */
void energy_turn(struct head *h);
/* A shadow has used so much more of its core. */
void energy_shadow_worked(struct head *h, uint64_t cpu_ns);
struct report_energy energy_report(const struct head *h);
/* The same, up to now, into the job's report. */
void energy_into_report(struct head *h);

#endif
