// SPDX-License-Identifier: BSD-3-Clause
/* Shadowed sets that lack a core for ever: their ranks join others (seed 003, 2.6, figure 6). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "head/head.h"

static bool any_spare(const struct head *h)
{
	for (uint32_t k = 0; k < h->node_set.count; k++)
		if (h->node_set.nodes[k].state == NODE_SPARE && !h->node_set.nodes[k].unusable)
			return true;
	return false;
}

/* Where the process that this rank lacks was at home. */
static uint32_t home_of_lacking(const struct head *h, uint32_t rank)
{
	const struct shadow_layout *l = &h->shadows.layout;

	return h->shadows.merged[rank] || living_leader(&h->view, rank) == 0 ? l->shadow_on[rank]
									     : l->main_on[rank];
}

static bool lacks_for_ever(const struct head *h, uint32_t rank)
{
	return living_count(&h->view, rank) == 1 &&
	       h->node_set.nodes[home_of_lacking(h, rank)].state == NODE_LOST;
}

bool shadows_set_is_broken(const struct head *h, uint32_t rank)
{
	const struct shadow_layout *l = &h->shadows.layout;

	if (!h->shadows.of || h->shadows.unmergeable || any_spare(h))
		return false;
	for (uint32_t r = 0; r < l->nranks; r++)
		if (l->set_of[r] == l->set_of[rank] && lacks_for_ever(h, r))
			return true;
	return false;
}

static bool layout_copy(const struct shadow_layout *l, struct shadow_layout *to)
{
	size_t bytes = l->nranks * sizeof(uint32_t);

	*to = *l;
	to->set_of = malloc(bytes);
	to->main_on = malloc(bytes);
	to->shadow_on = malloc(bytes);
	if (!to->set_of || !to->main_on || !to->shadow_on)
		return false;
	memcpy(to->set_of, l->set_of, bytes);
	memcpy(to->main_on, l->main_on, bytes);
	memcpy(to->shadow_on, l->shadow_on, bytes);
	return true;
}

static void tell_merged(struct head *h, uint32_t rank, uint32_t from)
{
	const struct shadow_layout *l = &h->shadows.layout;
	struct json_out j;

	head_say(h, "rank %u: set %u lacks a core for good; its shadow joins set %u, on node %s",
		 rank, from, l->set_of[rank], h->node_set.nodes[l->shadow_on[rank]].name);
	record_begin(&j, "sets merged");
	json_uint(&j, "rank", rank);
	json_uint(&j, "from", from);
	json_uint(&j, "set", l->set_of[rank]);
	record_end(&h->files.record, &j);
}

bool shadows_merge(struct head *h)
{
	struct shadow_layout before = h->shadows.layout, l;
	bool done = layout_copy(&before, &l);

	for (uint32_t r = 0; done && r < l.nranks; r++) {
		int leader = living_leader(&h->view, r);

		done = leader >= 0;
		if (done)
			l.main_on[r] = h->node_set.placement
					   .node_of[living_process(&h->view, r, (uint32_t)leader)];
	}
	done = done && shadow_sets_merge(&l, &h->view);
	h->shadows.unmergeable = !done;
	if (!done) {
		head_say(h,
			 "shadowed sets lack a core for good, and no others can take their ranks; "
			 "give the job a spare (--spares 1)");
		shadow_layout_fini(&l);
		return false;
	}
	h->shadows.layout = l;
	h->report.shadows.sets = shadow_set_count(&l);
	for (uint32_t r = 0; r < l.nranks; r++)
		if (l.set_of[r] != before.set_of[r]) {
			h->shadows.merged[r] = 1;
			tell_merged(h, r, before.set_of[r]);
		}
	shadow_layout_fini(&before);
	return true;
}

uint32_t shadows_merged_place(const struct head *h, uint32_t process)
{
	uint32_t rank = living_rank_of(process, h->view.nranks);
	const struct node *n;

	/* behind the last slot there is no room for a shadow */
	if (!h->shadows.of || !h->shadows.merged[rank] ||
	    living_leader(&h->view, rank) + 1 == (int)h->degree)
		return LIVING_NOWHERE;
	n = &h->node_set.nodes[h->shadows.layout.shadow_on[rank]];
	return (int)living_slot_of(process, h->view.nranks) > living_leader(&h->view, rank) &&
		       n->state == NODE_READY
		   ? n->index
		   : h->node_set.count;
}
