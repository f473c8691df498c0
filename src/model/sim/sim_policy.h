/* SPDX-License-Identifier: BSD-3-Clause */
/* What to do when: the decisions that protect a job, as pure functions of plain values. Nothing
 * here knows of a simulator or of a real job, so that both can ask the same code.
 * Work is in seconds of computing; "none" is NO_WORK. */
#ifndef HALE_MODEL_SIM_POLICY_H
#define HALE_MODEL_SIM_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Checkpoint levels, cheap and fragile first. What a level survives, the ones above survive too. */
enum policy_level {
	POLICY_LOCAL = 0, /* L1, in each node: the death of processes */
	POLICY_PARTNER =
	    1,		   /* L2, also in the next node: the loss of nodes that are no neighbours */
	POLICY_SHARED = 2, /* L4, in shared storage: the loss of any nodes */
	POLICY_LEVELS = 3,
	POLICY_BEGINNING = POLICY_LEVELS, /* no checkpoint serves: from the beginning */
};

#define POLICY_NO_WORK (-1.0)

/* The work at which the next checkpoint is due and, in *level, the highest level that is due then.
 * every: interval of each level, 0 where a level isn't used; saved: work in the newest usable
 * checkpoint of each level, POLICY_NO_WORK if there is none. A checkpoint of a higher level counts
 * for the lower ones. INFINITY when no level is used. */
double policy_checkpoint_due(const double every[POLICY_LEVELS], const double saved[POLICY_LEVELS],
			     enum policy_level *level);

/* The interval that costs least (Daly's higher order). A checkpoint takes cost_s from the job, and
 * a failure that goes back to one comes every mtbf_s on average. At least floor_s; at most work_s,
 * which means that no checkpoint is worth taking. */
double policy_checkpoint_interval_s(double cost_s, double mtbf_s, double work_s, double floor_s);

/* The level to go back to: of those that survived what happened (at_least and above) the newest,
 * of equally new ones the lowest. POLICY_BEGINNING if none has anything. */
enum policy_level policy_restore_level(const double saved[POLICY_LEVELS],
				       enum policy_level at_least);

/* Two nodes whose loss at the same time takes partner copies with it: neighbours in the ring of
 * nodes. */
bool policy_are_partners(uint32_t a, uint32_t b, uint32_t nodes);

/* A lost replica that waits to be cloned. */
struct policy_lost {
	uint32_t rank;
	uint8_t left;	  /* replicas of its rank that still live */
	bool needs_spare; /* its node is gone, too */
	bool in_hand;	  /* being cloned already */
};

/* Which of the lost replicas to clone now: the one whose rank has fewest left, of those the one
 * that waits longest (lost[] is in the order of their loss); ones in hand, and ones for which there
 * is no node, are passed over. Returns its index, or count if none can be cloned. */
size_t policy_clone_next(const struct policy_lost *lost, size_t count, bool spare_free);

/* The progress of a main at which the shadows must jump, so that no log exceeds mark (a part) of
 * its capacity: mains receive rate bytes per second, shadows run at speed of them. INFINITY when
 * the log never fills. */
double policy_jump_due(double aligned_work, double log_bytes, double mark, double rate,
		       double speed);

/* Whether to renew the vulnerable shadowed sets: after so many faults, 0 meaning never. */
bool policy_rejuvenate(uint32_t faults_since, uint32_t after);

#endif
