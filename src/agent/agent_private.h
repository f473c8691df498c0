/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the agent share.
 *
 *   agent.c        life: the session, what the head says, the end
 *   agent_ranks.c  segment, starting; agent_reap.c  ends
 *   agent_conn.c   the ranks' sockets
 *   agent_ckpt.c   what a checkpoint needs of this node
 *   agent_lease.c  whether the ranks may run
 *   agent_record.c   what is written down after each turn; agent_adopt.c  where a successor begins
 *   agent_events.c  the job's event broker here
 *   agent_copies.c images on this node's own disk, and their copies
 *   agent_head.c   one head goes, another one comes; agent_kept.c  output that waits for it
 *   agent_migrate.c  ranks that move to another node, or from there; agent_relay.c  their streams;
 *                  agent_direct.c  and those that don't pass the head; agent_sealed.c  so that
 *                  nobody can read them; agent_files.c  their files; agent_shell.c  scripts around
 *                  them
 *   agent_warm.c   a spare has the program's files in memory before it is needed; warm_files.c;
 *                  agent_standby.c  and processes of the program that stand ready
 */
#ifndef HALE_AGENT_AGENT_PRIVATE_H
#define HALE_AGENT_AGENT_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "agent/agent.h"
#include "agent/checkpoint/agent_ckpt.h"
#include "agent/copies/agent_copies.h"
#include "agent/events/agent_events.h"
#include "agent/failover/agent_failover.h"
#include "agent/job/agent_query.h"
#include "agent/lease/agent_lease.h"
#include "agent/migration/agent_migrate.h"
#include "agent/ranks/agent_ranks.h"
#include "agent/session/durable_session.h"
#include "agent/standby/agent_warm.h"
#include "agent/supervisor/supervisor.h"
#include "wire/message/message.h"
#include "wire/session/loop.h"
#include "wire/session/session.h"
#include "wire/session/setup.h"

struct agent;
struct agent_calls;

/* So many of each have been dealt with: node_record.h. */
struct agent_counts {
	uint64_t turns, frames, packets, pieces, feeds;
};

/* The end of the agent, or of all ranks. */
struct agent_end {
	int status;		   /* of the agent's process */
	enum book_waiting waiting; /* for what `clear` is armed */
	uint32_t clear_id;
	double patient_until; /* what ranks have left behind may run on; clock_seconds() */
	struct loop_timer clear;
};

struct agent {
	const struct agent_calls *up;
	struct setup setup;
	bool ready;	  /* setup has come */
	bool orphaned;	  /* the supervisor is gone */
	uint32_t last_id; /* newest id of a checkpoint, round or stop */
	struct loop loop;
	struct durable_session link; /* to the head */
	struct supervisor supervisor;
	struct loop_source signal_source, ward_source;
	struct loop_timer reaping, ward_looks; /* each has its own: neither replaces the other */
	struct loop_timer hang;		       /* --hang-after: ranks are looked at */
	struct agent_counts done;
	struct agent_drops drops;
	struct agent_view view;
	uint32_t replicas_view;	  /* of a job with replicas: its number (node/living.h) */
	struct agent_rank *ranks; /* [nranks] */
	struct agent_machine machine;
	struct agent_door door;
	struct agent_weights weights;
	struct agent_end end;
	/* the parts */
	struct agent_streams streams;
	struct agent_lease lease;
	struct agent_ckpt ckpt;
	struct agent_copies copies;
	struct agent_warm warm;
	struct agent_stand stand;
	struct agent_move move;
	struct agent_heads heads;
	struct agent_events *events; /* NULL: none are served here */
};

/* agent.c */
hale_status_t agent_begin_job(struct agent *a, struct error *err);
bool agent_begin_first(struct agent *a); /* of a node that has none yet */
void agent_clear_more(void *agent);
void agent_leave_if_clear(void *agent);
void agent_take(void *agent, const struct message *m);
void agent_head_lost(void *agent, const char *why);
/* Ends all ranks, and then the agent. */
void agent_leave_job(struct agent *a);
/* Ends all ranks at once, says why, and then the agent itself. */
void agent_end_by_fence(struct agent *a, const char *why);

#include "agent/agent_calls.h"

#endif
