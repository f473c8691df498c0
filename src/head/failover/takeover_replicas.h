/* SPDX-License-Identifier: BSD-3-Clause */
/* A new head of a job with replicas (docs/attach.md, "Jobs with replicas"): which processes live,
 * what of their output is to come, copies that were under way, silent errors that nobody has
 * answered. Nothing here does anything in a job without replicas. */
#ifndef HALE_HEAD_FAILOVER_TAKEOVER_REPLICAS_H
#define HALE_HEAD_FAILOVER_TAKEOVER_REPLICAS_H

#include <stdint.h>
#include "policy/job_state.h"

struct head;

/* Before any agent is heard: what of each rank is printed, and whose output does not come. */
void takeover_replicas_begin(struct head *h);
/* An agent sends again what that process has printed, from these positions of its streams on. */
void takeover_replica_prints(struct head *h, uint32_t process, const uint64_t first[2]);
/* All agents that are there have said what they have. Before nodes that are missing are lost:
 * copies that GO was written down for live, and the processes of nodes that the last head had lost
 * do not. state: the last head's. */
void takeover_replicas_settle(struct head *h, job_state_t state);
/* The ranks run on: all hear of the view, and what was begun is brought to its end. */
void takeover_replicas_go_on(struct head *h, job_state_t state);
void takeover_replicas_fini(struct head *h);

#endif
