/* SPDX-License-Identifier: BSD-3-Clause */
/* What `hale run --tasks=…` and `--inject due:…` say: checked by hale, handed to libhale_task.so as
 * HALE_TASKS and HALE_TASKS_DUE in the words of the user, read there again. docs/tasks.md. */
#ifndef HALE_NODE_TASK_SETTINGS_H
#define HALE_NODE_TASK_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum task_protect { TASK_PROTECT_ALL, TASK_PROTECT_AUTO, TASK_PROTECT_NONE };

struct task_settings {
	unsigned retries; /* executions of a task after the first one, before the job rolls back */
	enum task_protect protect;
	double residual;   /* auto: share of the exposure that may stay unprotected */
	bool keep_inputs;  /* copies of what is only read, too */
	bool check_writes; /* look for writes that are not declared */
	double memory;	   /* share of the job's failures that are taken for memory errors */
	size_t log_max;	   /* bytes of messages that the tasks of a process may keep together */
};

enum task_moment { TASK_AT_END, TASK_AT_RANDOM, TASK_AT_PAGE, TASK_AT_COPY };

/* Memory errors to pretend. prob 0: none. */
struct task_due {
	double prob; /* of each task */
	uint64_t seed;
	enum task_moment at;
	unsigned times; /* in a task that is struck: so many executions of it in a row */
};

/* "retries:3,protect:auto"; "" gives what holds without it. False: why gets half a sentence. */
bool task_settings_read(struct task_settings *s, const char *text, char why[160]);
/* "prob=0.1,seed=7,at=end" */
bool task_due_read(struct task_due *d, const char *text, char why[160]);

#endif
