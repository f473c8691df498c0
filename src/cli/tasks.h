/* SPDX-License-Identifier: BSD-3-Clause */
/* hale run --tasks: tasks that are executed again (task/), from the command line. */
#ifndef HALE_CLI_TASKS_H
#define HALE_CLI_TASKS_H

#include "launch/options.h"

/* Runs the job by run() with libhale_task.so in front of the program, and puts what it has to
 * report under "tasks" into the job's report. Returns the exit status. */
int cli_tasks_run(struct options *o, int (*run)(struct options *));
/* Puts what the processes of a job have left in the folder `dir` under "tasks" into the job's
 * report, and removes the folder. report NULL: there is none. */
void cli_tasks_gather(const char *dir, const char *report);

#endif
