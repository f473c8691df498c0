/* SPDX-License-Identifier: BSD-3-Clause */
/* A new view of a job with replicas: the ranks of this node find it in their segment. */
#include "agent/agent_private.h"
#include "node/living.h"

void agent_view(struct agent *a, const struct message *m)
{
	const unsigned char *lost = m->bytes;

	if (!a->view.segment || m->len != a->setup.nranks)
		return;
	a->replicas_view = m->id;
	for (uint32_t p = 0; p < a->setup.nranks; p++) {
		if (!lost[p]) { /* or a copy has come (agent_alone.c) */
			if (atomic_load(&segment_mailbox(a->view.segment, p)->lost) != 0)
				atomic_store(&segment_mailbox(a->view.segment, p)->lost, 0);
			continue;
		}
		/* who was dead from the beginning stays that (redundant_rejoin) */
		if (atomic_load(&segment_mailbox(a->view.segment, p)->lost) != LIVING_ABSENT)
			atomic_store(&segment_mailbox(a->view.segment, p)->lost, lost[p]);
		a->view.node_of[p] = a->supervisor.book->views[a->view.slot].node_of[p] =
		    LIVING_NOWHERE;
	}
	atomic_store(&a->view.segment->view, m->id);
	agent_weights_place(a);
	/* also those that sleep in a long wait, for a message of who has died */
	for (uint32_t p = 0; p < a->setup.nranks; p++)
		if (agent_has(a, p) && !lost[p])
			mailbox_ring_slow(segment_mailbox(a->view.segment, p));
}
