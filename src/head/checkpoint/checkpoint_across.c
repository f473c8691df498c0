/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that ranks of several nodes write by themselves. Each image has such a file, or its size,
 * at the moment of its own rank. So all ranks of the job stand still before the first image is
 * taken, and none runs on before the last one is; after a rollback none runs before all have put
 * back their files (docs/coordinated-checkpoint.md, 'Files of several nodes'). */
#include <stdio.h>
#include "base/base.h"
#include "head/head.h"
#include "head/head_private.h"
#include "node/segment.h"

enum { STILL = 1, TAKEN };

static bool several_nodes(const struct head *h)
{
	const uint32_t *node_of = h->node_set.placement.node_of;

	for (uint32_t r = 1; r < h->nranks; r++)
		if (node_of[r] != node_of[0])
			return true;
	return false;
}

void across_begin(struct head *h)
{
	struct checkpoint_across *a = &h->ckpt.across;

	*a = (struct checkpoint_across){.is = h->degree == 1 && several_nodes(h) &&
					      node_set_files_meet(&h->node_set)};
}

uint32_t across_flags(const struct head *h)
{
	return h->ckpt.across.is ? CKPT_ACROSS : 0;
}

void across_said(struct head *h, struct checkpoint_rank *k, enum proto_type said)
{
	struct checkpoint *c = &h->ckpt;
	uint32_t *count = said == PROTO_CKPT_STILL ? &c->across.still : &c->across.taken;
	int stage = said == PROTO_CKPT_STILL ? STILL : TAKEN;

	if (!c->across.is || k->across >= stage)
		return;
	k->across = stage;
	if (++*count == c->count.asked)
		node_set_checkpoint_on(&h->node_set, c->id, stage);
}

bool across_look(struct head *h)
{
	struct checkpoint_across *a = &h->ckpt.across;

	if (a->is || a->seen || h->degree > 1 || !several_nodes(h))
		return false;
	if (!a->looks)
		node_set_check(&h->node_set, true);
	a->looks = true;
	return true;
}

bool across_looked(struct head *h)
{
	struct checkpoint_across *a = &h->ckpt.across;

	if (!a->looks)
		return false;
	a->looks = false;
	a->seen = true;
	if (node_set_files_meet(&h->node_set))
		checkpoint_again(h,
				 "ranks of several nodes have just begun to write the same file");
	else
		checkpoint_complete_if_whole(h);
	return true;
}

/* Who comes back from an image has its files again when it says HELLO. */
void across_back(struct head *h)
{
	for (uint32_t r = 0; r < h->nranks; r++)
		if (!replicas_is_lost(h, r) && !h->ranks[r].ended && !h->node_set.ranks[r].met)
			return;
	node_set_back(&h->node_set);
}
