/* SPDX-License-Identifier: BSD-3-Clause */
/* --requeue: a job of a batch system ends before its time is over, and goes on in its next life.
 *
 *   SIGUSR1 (the batch system's warning)     a checkpoint, the end, `scontrol requeue`
 *   SIGTERM (preemption, or the end of time) a checkpoint, the end
 *
 * What had been printed when it ended is written into the job's folder; the next life, which goes
 * on from a moment before, does not print it again. */
#ifndef HALE_HEAD_HEAD_REQUEUE_H
#define HALE_HEAD_HEAD_REQUEUE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include "wire/session/loop.h"

struct head;

struct head_requeue {
	bool under_way;		 /* the last checkpoint was asked for */
	bool keeps;		 /* before that somebody had asked for one, so they are kept */
	bool ask;		 /* the batch system is to be asked for the next life */
	struct loop_timer ended; /* the checkpoint is over: the job ends */
};

/* False: the signal is for others to take. */
bool requeue_signal(struct head *h, int sig);
/* As control_checkpoint_over(). */
void requeue_checkpoint_over(struct head *h, const char *folder, const char *why);
enum { REQUEUE_PATH = PATH_MAX + 16 };
/* The file that says what was printed. */
static inline void requeue_path(const char *job_folder, char path[REQUEUE_PATH])
{
	snprintf(path, REQUEUE_PATH, "%s/printed", job_folder);
}
/* What this life's output begins behind, if an earlier one has written that. */
void requeue_begin_output(struct head *h, const char *job_folder);
/* Everybody is gone: writes what was printed. */
void requeue_save_output(struct head *h);
/* The last thing that a head does; Slurm may end it meanwhile. */
void requeue_ask(const struct head *h);

#endif
