// SPDX-License-Identifier: BSD-3-Clause
/* The policy of a job without replicas: one sender, one channel that keeps the order, no copies to
 * compare. Then every message is the next one, before and after a restart; anything else means that
 * a message was lost, doubled or overtaken, and results can't be trusted any more. */
#include "deliver/deliver.h"

#include "ckpt/rank.h"

static bool plain_other(struct ledger *l, uint32_t from, const struct envelope *e,
			const void *payload, int32_t distance)
{
	log_warn("internal error: rank %u got message %u from rank %u in context %u (tag %d) "
		 "instead of message %u; please report this",
		 link_self()->rank, e->number, from, e->context, e->tag, (uint32_t)l->have + 1);
	link_abort(70);
}

const struct deliver_ops deliver_plain = {
    .name = "plain",
    .other = plain_other,
};
