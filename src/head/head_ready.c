/* SPDX-License-Identifier: BSD-3-Clause */
/* Before a job begins: what it will have to write can be written, so that nobody learns the
 * contrary after days; and who has not answered yet. */
#include <stdio.h>
#include "base/base.h"
#include "head/head.h"
#include "store/seal.h"
#include "head/head_private.h"

#define SLOW_SECONDS	   5.0
#define SLOW_AGAIN_SECONDS 60.0

hale_status_t head_probe(struct head *h, struct error *err)
{
	struct options *o = h->o;
	hale_status_t status = HALE_OK;
	struct error later;

	if (o->report)
		status = report_probe("report", o->report, err);
	if (status != HALE_OK)
		o->report = NULL; /* it is said already */
	if (status == HALE_OK && o->profile)
		status = report_probe("profile", o->profile, err);
	if (status == HALE_OK && o->ckpt_every > 0)
		status = store_probe(o->ckpt_dir, h->id.job, err);
	if (status == HALE_OK && o->ckpt_every > 0)
		status = store_seal_probe(err);
	if (status == HALE_OK && o->ckpt_auto &&
	    store_probe(o->ckpt_dir, h->id.job, &later) != HALE_OK)
		snprintf(h->files.refused, sizeof(h->files.refused), "%s", later.text);
	return status;
}

/* A launcher may take its time: ssh to a machine that is switched off does for minutes. */
static void say_who_is_missing(void *arg)
{
	struct head *h = arg;
	const struct node_set *c = &h->node_set;
	const struct node *first = NULL;
	uint32_t missing = 0;
	char others[48] = "";

	if (h->state != JOB_STARTING)
		return;
	for (uint32_t k = 0; k < c->count; k++) {
		if (c->nodes[k].state != NODE_STARTING)
			continue;
		if (missing++ == 0)
			first = &c->nodes[k];
	}
	if (!first)
		return;
	if (missing > 1)
		snprintf(others, sizeof(others), " and %u other%s", missing - 1,
			 missing > 2 ? "s" : "");
	head_say(h,
		 "still waiting for node %s%s: the launcher runs, but no agent answers; is it up, "
		 "and can "
		 "commands be started there? (Ctrl-C ends the job)",
		 first->name, others);
	loop_timer_set(&h->loop, &h->slow_start, SLOW_AGAIN_SECONDS, say_who_is_missing, h);
}

void head_watch_start(struct head *h)
{
	loop_timer_set(&h->loop, &h->slow_start, SLOW_SECONDS, say_who_is_missing, h);
}
