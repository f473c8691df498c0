// SPDX-License-Identifier: BSD-3-Clause
/* HALE_Checkpoint(): the program itself asks. */
#include <hale/hale.h>

#include "ckpt/rank_private.h"

enum { ASK_SLEEP_NS = 50000000 };

__attribute__((visibility("default"))) int HALE_Checkpoint(void)
{
	bool restored;
	if (!link_self()->connected) {
		log_warn(
		    "HALE_Checkpoint() does nothing: this process isn't running under `hale run`");
		return HALE_CKPT_FAILED;
	}
	struct mailbox *m = link_self()->mailbox;
	uint32_t before = rank_checkpoint_last(&restored);
	uint32_t refused = atomic_load(&m->ckpt_refused);
	struct proto_plain ask = {.type = PROTO_CKPT_ASK, .value = (int32_t)before};
	if (!link_tell(&ask, sizeof(ask)))
		return HALE_CKPT_FAILED;
	for (;;) {
		guard_enter();
		uint32_t bell = mailbox_will_sleep(m);
		guard_safe_point();
		if (rank_checkpoint_last(&restored) == before &&
		    atomic_load(&m->ckpt_refused) == refused)
			link_sleep(bell, ASK_SLEEP_NS);
		mailbox_awake(m);
		guard_leave();
		if (rank_checkpoint_last(&restored) != before)
			return restored ? HALE_CKPT_RESTARTED : HALE_CKPT_CONTINUED;
		if (atomic_load(&m->ckpt_refused) != refused)
			return HALE_CKPT_FAILED;
	}
}
