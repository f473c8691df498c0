/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer to {"op":"metrics"}: sums over the whole job, as short for a job of a month as for one
 * of an hour. */
#include <string.h>
#include "base/base.h"
#include "control/control.h"
#include "head/nodes/node_set_private.h"
#include "head/head.h"
#include "head/control/control_serve.h"

/* Of failures of ranks, and of nodes. Those that were gone back for are recovered. */
static void print_failures(const struct report *r, struct json_out *j)
{
	uint64_t count[2] = {0}, recovered[2] = {0};
	double lost = 0, restarting = 0;

	for (size_t i = 0; i < r->failure_count; i++) {
		const struct report_failure *f = &r->failures[i];
		bool node = strncmp(f->reason, "node ", 5) == 0;

		count[node]++;
		recovered[node] += f->restart_seconds > 0 || f->together;
		lost += f->lost_seconds;
		restarting += f->restart_seconds;
	}
	json_uint(j, "rank_failures", count[0]);
	json_uint(j, "rank_failures_recovered", recovered[0]);
	json_uint(j, "node_failures", count[1]);
	json_uint(j, "node_failures_recovered", recovered[1]);
	json_double(j, "lost_seconds", lost);
	json_double(j, "restart_seconds", restarting);
}

static void print_kind(const struct report_sums *s, const char *key, struct json_out *j)
{
	json_open_object(j, key);
	json_uint(j, "count", s->bytes.count);
	json_double(j, "bytes", s->bytes.sum);
	json_double(j, "seconds", s->seconds.sum);
	json_double(j, "pause_seconds", s->pause.sum);
	json_close_object(j);
}

static void print_checkpoints(const struct head *h, struct json_out *j)
{
	const struct report *r = &h->report;
	struct report_sums sums[2] = {r->before[0], r->before[1]};
	uint64_t failed = 0;
	double newest = -1;

	report_sum_up(r, r->checkpoint_count, sums);
	for (size_t i = 0; i < r->checkpoint_count; i++) {
		const struct report_checkpoint *c = &r->checkpoints[i];

		failed += !c->complete;
		if (c->complete)
			newest = c->at_seconds + c->seconds;
	}
	print_kind(&sums[0], "full", j);
	print_kind(&sums[1], "incremental", j);
	json_uint(j, "given_up", failed);
	if (newest >= 0)
		json_double(j, "checkpoint_age_seconds", head_seconds(h) - newest);
}

void control_print_metrics(const struct head *h, struct json_out *j)
{
	uint32_t usable = 0;

	for (uint32_t k = 0; k < h->node_set.count; k++)
		usable += node_usable(&h->node_set.nodes[k]);
	json_string(j, "id", h->id.job);
	json_string(j, "program", h->program->path);
	json_string(j, "state", head_state_name(h));
	json_uint(j, "ranks", h->nranks);
	json_uint(j, "nodes", h->node_set.count);
	json_uint(j, "nodes_usable", usable);
	json_double(j, "seconds", head_seconds(h));
	json_uint(j, "rollbacks", h->report.restarts);
	json_uint(j, "migrations", h->report.migration_count);
	json_bool(j, "protected", h->ckpt.last_id > 0 && !h->report.unprotected.is);
	print_checkpoints(h, j);
	print_failures(&h->report, j);
}
