/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy/recovery.h"

recovery_verdict_t recovery_judge(const struct recovery_facts *f,
				  const struct recovery_death *death)
{
	if (!f->allowed)
		return RECOVERY_NOT_ALLOWED;
	if (!f->node_is_left)
		return RECOVERY_NO_NODE;
	if (!f->checkpoint && !f->beginning)
		return RECOVERY_NO_CHECKPOINT;
	if (death && !death->uncatchable && death->previous_signal == death->signal)
		return RECOVERY_SAME_DEATH;
	if (f->restarts >= f->restarts_max)
		return RECOVERY_TOO_OFTEN;
	return RECOVERY_ROLL_BACK;
}

const char *recovery_verdict_text(recovery_verdict_t verdict)
{
	static const char *const texts[RECOVERY_VERDICTS] = {
	    [RECOVERY_NOT_ALLOWED] = "the job ends, as --max-restarts is 0",
	    [RECOVERY_NO_NODE] = "the job ends: no node is left",
	    [RECOVERY_NO_CHECKPOINT] = "the job ends: there is no checkpoint to roll back to "
				       "(--ckpt-every makes some)",
	    [RECOVERY_SAME_DEATH] = "the job ends: it died of the same at the same place before, "
				    "so another restart would not help",
	    [RECOVERY_TOO_OFTEN] = "the job ends: it was restarted as often as --max-restarts "
				   "allows",
	};

	return verdict < RECOVERY_VERDICTS ? texts[verdict] : NULL;
}

bool recovery_verdict_is_ours(recovery_verdict_t verdict)
{
	return verdict == RECOVERY_TOO_OFTEN;
}

bool recovery_skips(const struct recovery_skip *skip, uint32_t id)
{
	return id > skip->above && id <= skip->to;
}

struct recovery_skip recovery_skip_more(const struct recovery_skip *skip, uint32_t id)
{
	return (struct recovery_skip){.above = id - 1, .to = skip->to < id ? id : skip->to};
}

uint32_t recovery_newest(const uint32_t *ids, size_t count, const struct recovery_skip *skip,
			 bool (*reachable)(void *arg, uint32_t id), void *arg)
{
	for (size_t i = count; i-- > 0;)
		if (!recovery_skips(skip, ids[i]) && reachable(arg, ids[i]))
			return ids[i];
	return 0;
}
