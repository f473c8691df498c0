/* SPDX-License-Identifier: BSD-3-Clause */
/* A rollback of a job with replicas (docs/redundancy.md, "Checkpoints"). The checkpoint has one
 * process of each rank, with --sdc all that there were. These begin, as if all others had died
 * right behind it; those come back as copies (head/migration/clone.c). */
#include <string.h>
#include "base/base.h"
#include "head/head.h"
#include "head/migration/migrate.h"

/* hale restart --replicas: fewer than there were. */
static void surplus_leave_out(struct head *h, struct store_manifest *m)
{
	for (uint32_t p = 0; p < h->nranks; p++) {
		uint32_t before = 0, rank = living_rank_of(p, h->view.nranks);

		for (uint32_t q = rank; q < p; q += h->view.nranks)
			before += m->parts[q].file[0] != 0;
		if (before >= h->moves.clones.wanted[rank])
			m->parts[p].file[0] = '\0';
	}
}

void recover_replicas(struct head *h)
{
	struct store_manifest *m = &h->recovery.manifest;

	if (h->degree == 1)
		return;
	surplus_leave_out(h, m);
	h->view.number = 0;
	shadows_begin(h, true);
	node_set_echo_begin(&h->node_set);
	memset(h->moves.clones.dropped, 0, h->nranks);
	memset(h->moves.clones.insists, 0, h->nranks);
	for (uint32_t p = 0; p < h->nranks; p++) {
		h->view.lost[p] = !m->parts[p].file[0];
		h->moves.clones.died_at[p] = clock_seconds();
		if (h->view.lost[p])
			node_set_echo_lost(&h->node_set, p);
		else
			node_set_echo_restored(&h->node_set, p, m->parts[p].position);
	}
}

void recover_replicas_placed(struct head *h)
{
	const struct shadow_layout *l = &h->shadows.layout;
	uint32_t n = h->view.nranks;

	for (uint32_t p = 0; p < h->nranks; p++)
		h->moves.clones.homes[p] = !h->shadows.of ? h->node_set.placement.node_of[p]
					   : p < n	  ? l->main_on[p]
							  : l->shadow_on[p % n];
}

void recover_replicas_run(struct head *h)
{
	h->moves.clones.again = 0;
	/* nobody has died of those that the checkpoint has no image of: they come in any case */
	h->moves.clones.asked = true;
	clone_soon(h);
	head_view_restored(h);
}
