/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rank runs on which cores. */
#ifndef HALE_LAUNCH_PIN_H
#define HALE_LAUNCH_PIN_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "launch/options.h"

struct pin_plan {
	uint32_t cores; /* that this process may use */
	bool bound;
	cpu_set_t *sets; /* one a rank, when bound; owned */
};

/* Equal shares of the cores in the order of the topology, so that neighbours in rank are
 * neighbours on the chip; one core each with BIND_CORE, and with BIND_L3, BIND_NUMA and BIND_SOCKET
 * all cores of that which the share's first one is in. Not bound with more ranks than cores, or
 * when OMP_NUM_THREADS says that a rank wants more cores than its share. */
void pin_plan_make(struct pin_plan *p, uint32_t nranks, bind_to_t how);
/* How many of these there are on this machine, of which this process may use some of; at least 1. */
uint32_t pin_objects(bind_to_t kind);
void pin_plan_fini(struct pin_plan *p);
/* "0-3,8"; returns buf. */
const char *pin_show(const cpu_set_t *set, char *buf, size_t cap);

#endif
