/* SPDX-License-Identifier: BSD-3-Clause */
/* job/: the life of one job: launch, watch, output, checkpoint, roll back, end.
 *
 *   cli/run ─▶ plan/        what is asked for, which program, on which nodes and cores
 *              head/        the job's state machine: decides; checkpoint, recover, levels
 *                ├─ migrate/     ranks leave nodes while they run
 *                ├─ watch/       the job on the event backplane; rules
 *                ├─ control/     hale ps, hale ckpt, … ask
 *                ├─ succession/  another head follows: what is left for it, the keeper of output
 *                ├─ report/      what happened, how the job works: on disk
 *                └─ crew/        its nodes, a mirror of the ranks; their output, rank 0's stdin
 *                     ┆ session/   loop, messages (docs/agent-protocol.md), leases, sealed streams
 *   cli/agent ─▶ guardian/    stands for a node: the parent of agent and ranks; the agent's book
 *              agent/       one a node: does, and tells
 *                └─ copier/      images between disks of nodes
 *                     ┆ segment, meter, proto: agreed with the ranks
 *
 * Each process has one thread, one event loop (loop.h), no globals.
 * May call: store/, image/ (reading side), ftb/, rules/, monitor/, base/. Called by: cli/.
 */
#ifndef HALE_JOB_JOB_H
#define HALE_JOB_JOB_H

/* Exit statuses of `hale run` that are not the program's own. */
enum {
	EXIT_USAGE = 64,	   /* bad options, or a program that can't run here */
	EXIT_UNRECOVERED = 70,	   /* a failure that no checkpoint could mend */
	EXIT_SUPERSEDED = 71,	   /* another head has the job */
	EXIT_TIMEOUT = 124,	   /* --timeout, as timeout(1) has it */
	EXIT_NOT_EXECUTABLE = 126, /* as shells have it */
	EXIT_NOT_FOUND = 127,
};

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
