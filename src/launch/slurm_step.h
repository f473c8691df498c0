/* SPDX-License-Identifier: BSD-3-Clause */
/* `srun hale run ./program`: each task of a job step is a hale run. Where nobody has said how many
 * ranks there are, these are one job: a rank for each task, on the task's node. The first task runs
 * it, the others have nothing to do. With -n each task runs a job of its own. */
#ifndef HALE_LAUNCH_SLURM_STEP_H
#define HALE_LAUNCH_SLURM_STEP_H

#include <stdbool.h>
#include <stdint.h>
#include "launch/hosts.h"

/* This process belongs to a step. */
bool slurm_in_step(void);
/* How many tasks the step has; 0: this process belongs to none, or its step has one task. */
long slurm_step_tasks(void);
/* The first one of them. */
bool slurm_step_first(void);
/* "2(x3),1" is 2 2 2 1. Gives slots to the hosts; false: this is no such text, or it is about other
 * numbers of hosts. */
bool slurm_step_slots(struct hosts *h, const char *text);

#endif
