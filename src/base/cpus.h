/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALE_BASE_CPUS_H
#define HALE_BASE_CPUS_H

#include <sched.h>

/* How many processors this thread may run on; at least 1. */
static inline unsigned cpus_allowed(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) < 1)
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

#endif
