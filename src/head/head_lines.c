/* SPDX-License-Identifier: BSD-3-Clause */
/* The two lines that every job says: what begins and how it is protected, and what it came to. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"

enum { LINE = 512 };

/* Appends to text (LINE bytes), which has *len; what doesn't fit is cut. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t *len, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text + *len, LINE - *len, fmt, ap);
	va_end(ap);
	if (n > 0)
		*len += (size_t)n < LINE - *len ? (size_t)n : LINE - *len - 1;
}

static void add_count(char *text, size_t *len, uint64_t count, const char *what)
{
	add(text, len, "%lu %s%s", (unsigned long)count, what, count == 1 ? "" : "s");
}

static void add_protection(const struct head *h, char *text, size_t *len)
{
	const struct options *o = h->o;
	char time[16], mtbf[CKPT_MTBF];

	if (o->shadows > 0) {
		add(text, len, "each has a shadow, %ld on a core, and ", o->shadows);
	} else if (o->audit > 0)
		add(text, len, "audited rank after rank, %s each, and ",
		    units_show_seconds(o->audit, time));
	else if (h->degree > 1 && o->replicas_first)
		add(text, len, "each runs in %ld of up to %u processes, and ", o->replicas_first,
		    h->degree);
	else if (h->degree > 1)
		add(text, len, "%s in %s%u processes, and ",
		    o->replicas_of ? "they run" : "each runs", o->replicas_of ? "1 or " : "",
		    h->degree);
	if (h->degree > 1 && o->ckpt_every <= 0) {
		add(text, len, "checkpoints on request only");
		return;
	}
	if (o->ckpt_auto && h->files.refused[0]) {
		add(text, len, "no checkpoints: %s", h->files.refused);
		return;
	}
	if (o->ckpt_every > 0)
		add(text, len, "a checkpoint every %s", units_show_seconds(o->ckpt_every, time));
	else if (o->ckpt_auto)
		add(text, len, "checkpoints from %s on, as often as it pays",
		    units_show_seconds(o->ckpt_first, time));
	else
		add(text, len, "checkpoints on request only");
	add(text, len, ", into %s/%s", o->ckpt_dir, h->id.job);
	if (o->ckpt_local)
		add(text, len, " and %s on the nodes", o->ckpt_local);
	if (o->ckpt_auto)
		add(text, len, "; %s", checkpoint_show_mtbf(h, mtbf));
}

/* --display-map: the ranks of each node, by ranges. */
static void say_map(const struct head *h)
{
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		char text[LINE] = "";
		size_t len = 0;

		for (uint32_t r = 0; r < h->nranks; r++) {
			uint32_t first = r;

			if (h->node_set.placement.node_of[r] != k)
				continue;
			while (r + 1 < h->nranks && h->node_set.placement.node_of[r + 1] == k)
				r++;
			add(text, &len, first == r ? "%s%u" : "%s%u-%u", len ? "," : "", first, r);
		}
		log_warn("node %s: %s%s", h->node_set.nodes[k].name, len ? "ranks " : "no ranks",
			 text);
	}
}

void head_say_begin(struct head *h)
{
	char text[LINE] = "";
	size_t len = 0;

	h->begin_said = true;
	add(text, &len, "job %s: ", h->id.job);
	add_count(text, &len, h->nranks / (h->degree > 0 ? h->degree : 1), "rank");
	add(text, &len, " on ");
	if (h->node_set.count > 1)
		add_count(text, &len, h->node_set.count, "node");
	else
		add_count(text, &len, node_set_cores(&h->node_set), "core");
	add(text, &len, "; ");
	if (h->program->unprotected[0])
		add(text, &len, "unprotected");
	else
		add_protection(h, text, &len);
	head_say(h, "%s", text);
	head_report_nodes(h);
	if (h->o->display_map)
		say_map(h);
}

static void add_counts(const struct head *h, char *text, size_t *len)
{
	const struct report *r = &h->report;
	struct report_sums sums[2] = {r->before[0], r->before[1]};
	double lost = 0, away = 0;
	char time[16], until[16];

	report_sum_up(r, r->checkpoint_count, sums);
	for (size_t i = 0; i < r->failure_count; i++) {
		lost += r->failures[i].lost_seconds;
		away += r->failures[i].restart_seconds;
	}
	if (h->degree > 1) {
		add_count(text, len, r->replicas_lost, "lost replica");
		add(text, len, ", ");
		if (r->audits) {
			add_count(text, len, r->audit_count, "audit");
			add(text, len, ", ");
		}
	}
	add_count(text, len, sums[0].bytes.count + sums[1].bytes.count, "checkpoint");
	if (r->restarts > 0) {
		add(text, len, ", ");
		add_count(text, len, r->restarts, "rollback");
		add(text, len, " (%s lost, run again after %s)", units_show_seconds(lost, time),
		    units_show_seconds(away, until));
	}
	if (r->migration_count > 0) {
		add(text, len, ", ");
		add_count(text, len, r->migration_count, "migration");
	}
}

void head_say_end(struct head *h)
{
	char text[LINE] = "", time[16];
	uint32_t *ids = NULL;
	size_t len = 0, kept;

	if (!h->begin_said)
		return;
	kept = h->files.is_open ? store_list(h->files.store.job_folder, &ids) : 0;
	free(ids);
	add(text, &len, "job %s: status %d after %s; ", h->id.job, h->end.status,
	    units_show_seconds(head_seconds(h), time));
	add_counts(h, text, &len);
	if (kept > 0)
		add(text, &len, "; the newest %s in %s/%s", kept == 1 ? "is" : "are",
		    h->o->ckpt_dir, h->id.job);
	head_say(h, "%s", text);
}
