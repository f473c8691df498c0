/* SPDX-License-Identifier: BSD-3-Clause */
/* Silent errors (docs/advisor.md): what finds them, what that costs, and how soon. */
#include <math.h>
#include <stdio.h>
#include "model/advise.h"

/* A visit is long enough for its two stops to be that share of it. */
#define STANDS_STILL 0.005
#define VISIT_LEAST  1.0
#define VISIT_MOST   3600.0

/* A visit makes two copies of a rank. Each is streamed as a checkpoint is written, while the rank
 * runs, and ends with a stop that is taken to be as long as a checkpoint's pause. */
static void audit_set(const struct advise_measure *m, struct advise_silent *c)
{
	double ranks = m->ranks > 0 ? m->ranks : 1, stops = 2 * m->full.pause_s;
	double copies = 2 * m->full.write_s.value, visit;
	char text[16];

	visit = advise_round_s(fmin(fmax(stops / STANDS_STILL, VISIT_LEAST), VISIT_MOST), text);
	c->name = "audits";
	snprintf(c->flags, sizeof(c->flags), "--audit %s", text);
	/* what the twin sends is one rank's share of what all send twice */
	c->cost = (1 + stops / (visit + copies) + m->beta.value / ranks) * (1 + 1 / ranks) - 1;
	c->found_s = ranks * (visit + copies);
	c->corrects = true;
}

static void replicas_set(const struct advise_measure *m, int degree, struct advise_silent *c)
{
	c->name = degree == 2 ? "2x compared" : "3x compared";
	snprintf(c->flags, sizeof(c->flags), "--replicas %d --sdc hash", degree);
	c->cost = (1 + (degree - 1) * m->beta.value) * degree - 1;
	c->found_s = degree == 2 ? INFINITY : 0;
	c->corrects = degree > 2;
}

void advise_silent(const struct advise_measure *m, struct advise_silent choices[ADVISE_SILENT])
{
	audit_set(m, &choices[0]);
	replicas_set(m, 2, &choices[1]);
	replicas_set(m, 3, &choices[2]);
}
