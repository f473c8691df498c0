// SPDX-License-Identifier: BSD-3-Clause
#include "head/job/job_energy.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "base/clock.h"
#include "head/head.h"

#define TURN_SECONDS 0.1

/* ---- counters ---- */

static bool number_read(const char *folder, const char *name, double *value)
{
	char path[160];
	FILE *f;
	bool good;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "re");
	good = f && fscanf(f, "%lf", value) == 1;
	if (f)
		fclose(f);
	return good;
}

/* Packages: intel-rapl:0 and so on; their parts (intel-rapl:0:0) are counted in them. */
static void meters_find(struct head_energy *e)
{
	const char *folder = getenv("HALE_POWERCAP");
	char pattern[160];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/*-rapl:[0-9]*",
		 folder ? folder : "/sys/class/powercap");
	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc && e->meters < ENERGY_METERS; i++) {
		struct energy_meter *m = &e->meter[e->meters];
		const char *path = found.gl_pathv[i], *name = strrchr(path, '/') + 1;

		if (strchr(strchr(name, ':') + 1, ':') || strlen(path) >= sizeof(m->path) ||
		    !number_read(path, "energy_uj", &m->last_uj))
			continue;
		snprintf(m->path, sizeof(m->path), "%s", path);
		if (!number_read(path, "max_energy_range_uj", &m->max_uj))
			m->max_uj = 0;
		e->meters++;
	}
	globfree(&found);
}

static void meters_read(struct head_energy *e)
{
	for (uint32_t i = 0; i < e->meters; i++) {
		struct energy_meter *m = &e->meter[i];
		double now;

		if (!number_read(m->path, "energy_uj", &now))
			continue;
		e->joules += energy_gained(m->last_uj, now, m->max_uj) * 1e-6;
		m->last_uj = now;
	}
}

/* ---- cores ---- */

/* Sets whose core of shadows has one; who was promoted counts as a main. */
static uint32_t cores_of_shadows(const struct head *h)
{
	const struct shadow_layout *l = &h->shadows.layout;
	unsigned char *seen = calloc(l->nranks, 1);
	uint32_t cores = 0;

	for (uint32_t r = 0; seen && r < l->nranks; r++) {
		if (seen[l->set_of[r]] || shadow_is_lacking(&h->view, r))
			continue;
		seen[l->set_of[r]] = 1;
		cores++;
	}
	free(seen);
	return cores;
}

void energy_turn(struct head *h)
{
	struct head_energy *e = &h->shadows.energy;
	double now = clock_seconds();
	double passed = now - (e->last_at > 0 ? e->last_at : h->began);

	if (e->last_at > 0 && passed < TURN_SECONDS)
		return;
	if (e->last_at == 0 && h->hosts.count == 0)
		meters_find(e);
	else
		meters_read(e);
	e->last_at = now;
	if (h->state != JOB_RUNNING)
		return;
	e->mains.on_s += passed * h->view.nranks;
	e->mains.busy_s += passed * h->view.nranks;
	e->shadows.on_s += passed * cores_of_shadows(h);
}

void energy_shadow_worked(struct head *h, uint64_t cpu_ns)
{
	h->shadows.energy.shadows.busy_s += (double)cpu_ns * 1e-9;
}

struct report_energy energy_report(const struct head *h)
{
	const struct head_energy *e = &h->shadows.energy;
	double mains = energy_of(&e->mains, ENERGY_STATIC);

	return (struct report_energy){.known = e->last_at > 0,
				      .measured = e->meters > 0,
				      .joules = e->joules,
				      .static_part = ENERGY_STATIC,
				      .mains = mains,
				      .shadows = energy_of(&e->shadows, ENERGY_STATIC),
				      .twins = 2 * mains};
}

void energy_into_report(struct head *h)
{
	if (!h->shadows.of)
		return;
	energy_turn(h);
	h->report.shadows.energy = energy_report(h);
}
