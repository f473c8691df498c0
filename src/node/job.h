/* SPDX-License-Identifier: BSD-3-Clause */
/* What all processes of a job agree on: exit statuses, limits, names. The rooms of a job:
 *
 *   cli/run ─▶ launch/      what is asked for, which program, on which nodes and cores
 *              head/        the job's state machine carries decisions of policy/ out
 *                ├─ checkpoint/, levels/, recovery/   images are taken, spread, gone back to
 *                ├─ migration/   ranks leave nodes while they run
 *                ├─ watch/       the job on the event backplane; rules
 *                ├─ failover/    another head follows: what is left for it
 *                ├─ output/      what ranks print, and rank 0's stdin
 *                └─ nodes/       sessions with the nodes, a mirror of the ranks
 *              control/     hale ps, hale ckpt, … ask the head
 *              report/      what happened, how the job works: on disk
 *                     ┆ wire/   messages (docs/agent-protocol.md), sessions, leases, seals
 *   cli/agent ─▶ agent/     one a node: does, and tells
 *                ├─ supervisor/  the parent of agent and ranks, and the agent's record
 *                └─ copier/      images between disks of nodes
 *                     ┆ node/   segment, packets, meters: agreed with the ranks
 *
 * Each process has one thread, one event loop (wire/session/loop.h), no globals. */
#ifndef HALE_NODE_JOB_H
#define HALE_NODE_JOB_H

#include "base/exit_status.h"

/* What happens when nobody reads the job's output any more. */
typedef enum closed_output {
	CLOSED_DEFAULT, /* a pipe or socket: the job ends; else it goes on */
	CLOSED_END,
	CLOSED_CONTINUE,
} closed_output_t;

enum { JOB_ID_MAX = 64, JOB_RANKS_MAX = 4096, JOB_NODES_MAX = 1024, JOB_NODE_NAME = 64 };

/* The name of a rank's image in the folder of a checkpoint. */
#define JOB_IMAGE_NAME "rank-%u.img"

/* Brokers of a job's hosts: all right below the head's; what they say passes its sessions. */
enum { WATCH_ARITY = 256, WATCH_WINDOW = 1 << 20 };
#define WATCH_HEARTBEAT 0.5
#define WATCH_DEAD	2.5

#endif
