/* SPDX-License-Identifier: BSD-3-Clause */
#include "head/failover/takeover_replicas.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "head/migration/migrate.h"
#include "head/output/output_daemon.h"

enum { FOUND_MAX = 64 };

/* What processes have said before this head knew where it stands. */
struct takeover_found {
	size_t count;
	struct {
		uint32_t process;
		struct proto_sdc sdc;
	} at[FOUND_MAX];
};

/* ---- output ---- */

void takeover_replicas_begin(struct head *h)
{
	if (h->degree == 1)
		return;
	for (uint32_t r = 0; r < h->view.nranks; r++)
		for (int i = 0; i < 2; i++)
			if (takeover_printed(h, r, i) != OUTPUT_DAEMON_UNKNOWN)
				node_set_echo_follow(&h->node_set, r, i, takeover_printed(h, r, i));
	for (uint32_t p = 0; p < h->nranks; p++)
		if (h->view.lost[p])
			node_set_echo_lost(&h->node_set, p);
}

void takeover_replica_prints(struct head *h, uint32_t process, const uint64_t first[2])
{
	uint32_t rank = living_rank_of(process, h->view.nranks);

	/* agents keep what is not printed for certain: what is before is */
	for (int i = 0; i < 2; i++)
		if (takeover_printed(h, rank, i) == OUTPUT_DAEMON_UNKNOWN &&
		    !h->node_set.ranks[rank].out[i].used)
			node_set_echo_follow(&h->node_set, rank, i, first[i]);
	node_set_echo_again(&h->node_set, process, first);
}

/* ---- silent errors ---- */

bool takeover_found(struct head *h, uint32_t process, const struct proto_sdc *sdc)
{
	struct takeover_found *f = h->succession.found;

	if (takeover_settled(h))
		return false;
	if (!f)
		f = h->succession.found = calloc(1, sizeof(*f));
	if (f && f->count < FOUND_MAX) {
		f->at[f->count].process = process;
		f->at[f->count++].sdc = *sdc;
	}
	return true;
}

void takeover_replicas_fini(struct head *h)
{
	free(h->succession.found);
	h->succession.found = NULL;
}

static void errors_follow(struct head *h)
{
	const struct takeover_found *f = h->succession.found;

	for (size_t i = 0; f && i < f->count; i++)
		head_silent_error(h, f->at[i].process, &f->at[i].sdc);
	takeover_replicas_fini(h);
}

/* ---- settled ---- */

/* The ranks were at work, or were being rebuilt. */
static bool follows(const struct head *h, job_state_t state)
{
	return h->degree > 1 && h->node_set.laid_out && h->state == JOB_RUNNING &&
	       (state == JOB_RUNNING || state == JOB_RESTORING);
}

void takeover_replicas_settle(struct head *h, job_state_t state)
{
	if (!follows(h, state))
		return;
	migrate_clones_go(h);
	for (uint32_t k = 0; k < h->node_set.count; k++) {
		const struct node *n = &h->node_set.nodes[k];

		if (n->state != NODE_LOST)
			continue;
		snprintf(h->lost.name, sizeof(h->lost.name), "%s", n->name);
		snprintf(h->lost.why, sizeof(h->lost.why), "as the last head knew");
		head_survive_node(h, n);
	}
}

void takeover_replicas_go_on(struct head *h, job_state_t state)
{
	if (!follows(h, state))
		return;
	/* some may not have heard of the last one */
	head_view_changed(h);
	/* the last head may not have come to it */
	for (uint32_t p = 0; p < h->nranks; p++)
		if (!h->view.lost[p] && (h->ranks[p].convicted || h->moves.clones.dropped[p]))
			node_set_signal(&h->node_set, p, SIGKILL);
	errors_follow(h);
	if (h->state != JOB_RUNNING)
		return;
	/* as when all are back from a checkpoint: some may never have lived */
	h->moves.clones.asked |= state == JOB_RESTORING;
	head_visits_go_on(h);
	clone_soon(h);
}
