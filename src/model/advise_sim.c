/* SPDX-License-Identifier: BSD-3-Clause */
/* A choice as the simulator's scheme, played out. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/base.h"
#include "model/advise.h"
#include "model/sim/sim.h"

static bool begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

static void add(char *text, size_t cap, const char *more)
{
	size_t len = strlen(text);

	snprintf(text + len, cap - len, "%s%s", len ? "+" : "", more);
}

/* "2x+ckpt:every=100s,cost=1s,restart=5s"; "": the simulator has no such thing. */
static void scheme_of(const struct advise_measure *m, const struct advise_choice *c, char *text,
		      size_t cap)
{
	char part[160];

	text[0] = '\0';
	if (c->shadow_speed > 0 || begins(c->name, "tasks") || begins(c->name, "incremental"))
		return;
	if (begins(c->name, "2x") || begins(c->name, "3x"))
		add(text, cap, begins(c->name, "2x") ? "2x" : "3x");
	if (strstr(c->name, "clone")) {
		snprintf(part, sizeof(part), "clone:time=%.9gs", m->full.write_s.value);
		add(text, cap, part);
	}
	if (c->interval_s > 0) {
		snprintf(part, sizeof(part), "ckpt:every=%.9gs,cost=%.9gs,restart=%.9gs",
			 c->interval_s - m->full.cost_s.value, m->full.cost_s.value,
			 m->restart_s.value + m->full.write_s.value);
		add(text, cap, part);
	}
	if (!text[0])
		add(text, cap, "none");
}

hale_status_t advise_simulate(const struct advise_measure *m, const struct advise_machine *machine,
			      const struct advise_choice *c, uint32_t runs,
			      struct advise_simulated *out, struct error *err)
{
	struct sim_plan plan;
	struct sim_summary s;
	char text[256];
	hale_status_t status;

	*out = (struct advise_simulated){0};
	scheme_of(m, c, text, sizeof(text));
	if (!text[0] || c->why[0])
		return HALE_OK;
	sim_plan_init(&plan);
	plan.job.nodes = machine->nodes;
	plan.job.work_s = machine->work_s;
	plan.job.beta = m->beta.value;
	plan.job.launch_s = m->restart_s.value;
	plan.job.socket_w = machine->node_w;
	plan.failures.law = machine->fails;
	plan.runs = runs;
	plan.threads = 1;
	plan.seed = 1;
	status = sim_scheme_parse(text, &plan.scheme, err);
	if (status == HALE_OK)
		status = sim_run(&plan, &s, NULL, NULL, err);
	if (status == HALE_OK && s.finished == s.runs && !s.hopeless)
		*out = (struct advise_simulated){
		    {s.mean[SIM_WALL_S], s.low_s, s.high_s}, s.p95_s, s.runs};
	sim_plan_fini(&plan);
	return status;
}
