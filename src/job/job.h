/* SPDX-License-Identifier: BSD-3-Clause */
/* job/: the life of one job on one machine: launch, watch, output, checkpoint, roll back, end.
 *
 *   cli/run ─▶ head  (head.h: the job's state machine; decides)
 *                ├─ agent   (agent.h: segment, sockets, processes; does, reports by callbacks)
 *                │    ├─ launch, environment, pin, guardian
 *                │    └─ streams, dedupe, feed       output and stdin of the ranks
 *                ├─ checkpoint, recover              one checkpoint; one way back
 *                ├─ inject, control                  faults on request; hale ps, hale ckpt
 *                ├─ watch                            events, rules, monitors
 *                └─ record, report                   what happened, on disk
 *
 * One thread, one event loop (loop.h), no globals: so that the agent can become a process of its
 * own on each node without another line changing.
 * May call: store/, image/ (reading side), ftb/, rules/, base/. Called by: cli/.
 */
#ifndef HALE_JOB_JOB_H
#define HALE_JOB_JOB_H

/* Exit statuses of `hale run` that are not the program's own. */
enum {
	EXIT_USAGE = 64,	   /* bad options, or a program that can't run here */
	EXIT_UNRECOVERED = 70,	   /* a failure that no checkpoint could mend */
	EXIT_NOT_EXECUTABLE = 126, /* as shells have it */
	EXIT_NOT_FOUND = 127,
};

enum { JOB_ID_MAX = 64, JOB_RANKS_MAX = 4096, JOB_NODES_MAX = 1024, JOB_NODE_NAME = 64 };

/* The name of a rank's image in the folder of a checkpoint. */
#define JOB_IMAGE_NAME "rank-%u.img"

#endif
