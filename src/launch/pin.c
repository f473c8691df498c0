/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/pin.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <stdio.h>
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

static const hwloc_obj_type_t types[BIND_KINDS] = {[BIND_CORE] = HWLOC_OBJ_CORE,
						   [BIND_L3] = HWLOC_OBJ_L3CACHE,
						   [BIND_NUMA] = HWLOC_OBJ_NUMANODE,
						   [BIND_SOCKET] = HWLOC_OBJ_PACKAGE};

/* The cores of all of what is bound to, of which core is one; core itself where the machine has no
 * such thing. */
static void widen(cpu_set_t *set, hwloc_topology_t topology, const cpu_set_t *core,
		  const cpu_set_t *allowed, bind_to_t how)
{
	int n = hwloc_get_nbobjs_by_type(topology, types[how]);
	cpu_set_t all, common;

	for (int i = 0; i < n; i++) {
		hwloc_obj_t o = hwloc_get_obj_by_type(topology, types[how], (unsigned)i);

		CPU_ZERO(&all);
		hwloc_cpuset_to_glibc_sched_affinity(topology, o->cpuset, &all, sizeof(all));
		CPU_AND(&common, &all, core);
		if (CPU_COUNT(&common) > 0) {
			CPU_AND(set, &all, allowed);
			return;
		}
	}
	*set = *core;
}

static void share_out(struct pin_plan *p, hwloc_topology_t topology, const cpu_set_t *allowed,
		      const cpu_set_t *cores, uint32_t nranks, bind_to_t how)
{
	p->sets = calloc(nranks, sizeof(*p->sets));
	if (!p->sets)
		return;
	for (uint32_t r = 0; r < nranks; r++) {
		uint32_t first, count;

		place_share(p->cores, nranks, r, &first, &count);
		if (how == BIND_CORE)
			count = 1;
		if (how >= BIND_L3) {
			widen(&p->sets[r], topology, &cores[first], allowed, how);
			continue;
		}
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
	if (how < BIND_DEFAULT || how >= BIND_KINDS)
		how = BIND_DEFAULT;
	if (nranks == 0 || nranks > p->cores || how == BIND_NONE ||
	    (nranks == 1 && how < BIND_CORE) || hwloc_topology_init(&topology) != 0)
		return;
	cores = calloc(CPU_SETSIZE, sizeof(*cores));
	if (cores && hwloc_topology_load(topology) == 0) {
		uint32_t n = allowed_cores(topology, &allowed, cores, CPU_SETSIZE);

		if (n > 0)
			p->cores = n;
		if (n >= nranks && (how >= BIND_CORE || !wants_more_threads(n / nranks)))
			share_out(p, topology, &allowed, cores, nranks, how);
	}
	free(cores);
	hwloc_topology_destroy(topology);
}

uint32_t pin_objects(bind_to_t kind)
{
	hwloc_topology_t topology;
	cpu_set_t allowed, all;
	uint32_t count = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
	    hwloc_topology_init(&topology) != 0)
		return 1;
	if (hwloc_topology_load(topology) == 0) {
		for (int i = 0; i < hwloc_get_nbobjs_by_type(topology, types[kind]); i++) {
			CPU_ZERO(&all);
			hwloc_cpuset_to_glibc_sched_affinity(
			    topology,
			    hwloc_get_obj_by_type(topology, types[kind], (unsigned)i)->cpuset, &all,
			    sizeof(all));
			CPU_AND(&all, &all, &allowed);
			count += CPU_COUNT(&all) > 0;
		}
	}
	hwloc_topology_destroy(topology);
	return count ? count : 1;
}

void pin_plan_fini(struct pin_plan *p)
{
	free(p->sets);
	p->sets = NULL;
}

const char *pin_show(const cpu_set_t *set, char *buf, size_t cap)
{
	size_t len = 0;

	buf[0] = '\0';
	for (int c = 0; c < CPU_SETSIZE; c++) {
		int first = c;

		if (!CPU_ISSET(c, set))
			continue;
		while (c + 1 < CPU_SETSIZE && CPU_ISSET(c + 1, set))
			c++;
		int n = snprintf(buf + len, cap - len, first == c ? "%s%d" : "%s%d-%d",
				 len ? "," : "", first, c);
		if (n < 0 || (size_t)n >= cap - len)
			break;
		len += (size_t)n;
	}
	return buf;
}
