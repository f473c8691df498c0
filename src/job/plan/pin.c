/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/plan/pin.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <stdlib.h>
#include "base/base.h"
#include "policy/place.h"

/* The allowed processing units of each allowed core, in topology order; returns how many cores. */
static uint32_t allowed_cores(hwloc_topology_t topology, const cpu_set_t *allowed, cpu_set_t *cores,
			      uint32_t max)
{
	uint32_t count = 0;
	int n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);

	for (int i = 0; i < n && count < max; i++) {
		hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, (unsigned)i);

		CPU_ZERO(&cores[count]);
		hwloc_cpuset_to_glibc_sched_affinity(topology, core->cpuset, &cores[count],
						     sizeof(cpu_set_t));
		CPU_AND(&cores[count], &cores[count], allowed);
		if (CPU_COUNT(&cores[count]) > 0)
			count++;
	}
	return count;
}

static bool wants_more_threads(uint32_t share)
{
	const char *text = getenv("OMP_NUM_THREADS");
	long threads;

	return text && units_parse_int(text, 1, 1000000, &threads) && (uint32_t)threads > share;
}

static void share_out(struct pin_plan *p, const cpu_set_t *cores, uint32_t nranks, bind_to_t how)
{
	p->sets = calloc(nranks, sizeof(*p->sets));
	if (!p->sets)
		return;
	for (uint32_t r = 0; r < nranks; r++) {
		uint32_t first, count;

		place_share(p->cores, nranks, r, &first, &count);
		if (how == BIND_CORE)
			count = 1;
		CPU_ZERO(&p->sets[r]);
		for (uint32_t c = first; c < first + count; c++)
			CPU_OR(&p->sets[r], &p->sets[r], &cores[c]);
	}
	p->bound = true;
}

void pin_plan_make(struct pin_plan *p, uint32_t nranks, bind_to_t how)
{
	cpu_set_t allowed, *cores;
	hwloc_topology_t topology;

	*p = (struct pin_plan){.cores = 1};
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return;
	p->cores = (uint32_t)CPU_COUNT(&allowed);
	/* the topology takes a while to read: not for a job that can't be bound anyway */
	if (nranks == 0 || nranks > p->cores || how == BIND_NONE ||
	    (nranks == 1 && how != BIND_CORE) || hwloc_topology_init(&topology) != 0)
		return;
	cores = calloc(CPU_SETSIZE, sizeof(*cores));
	if (cores && hwloc_topology_load(topology) == 0) {
		uint32_t n = allowed_cores(topology, &allowed, cores, CPU_SETSIZE);

		if (n > 0)
			p->cores = n;
		if (n >= nranks && (how == BIND_CORE || !wants_more_threads(n / nranks)))
			share_out(p, cores, nranks, how);
	}
	free(cores);
	hwloc_topology_destroy(topology);
}

void pin_plan_fini(struct pin_plan *p)
{
	free(p->sets);
	p->sets = NULL;
}
