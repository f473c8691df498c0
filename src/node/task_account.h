/* SPDX-License-Identifier: BSD-3-Clause */
/* What the protection of tasks did and cost: one process's share, which libhale_task.so leaves in
 * the folder HALE_TASKS_REPORTS, and their sum, the "tasks" of a job's report (docs/tasks.md). */
#ifndef HALE_NODE_TASK_ACCOUNT_H
#define HALE_NODE_TASK_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/json.h"

enum task_count {
	TASK_RUN,	 /* executions that were asked for */
	TASK_PROTECTED,	 /* of them, with a checkpoint */
	TASK_REEXECUTED, /* times that a task was executed again */
	TASK_FELL_BACK,	 /* errors that only a rollback of the job mends */
	TASK_STRUCK,	 /* errors in all */
	TASK_MENDED,	 /* inputs repaired in place: pages and blocks */
	TASK_REPLAYED,	 /* messages that came out of a log */
	TASK_SKIPPED,	 /* sends that were not repeated */
	TASK_COUNTS
};

/* Why a task has no checkpoint. */
enum task_reason {
	TASK_NO_DEPEND,	 /* it declares nothing */
	TASK_UNDEFERRED, /* if(0): the compiler calls it directly */
	TASK_LOOP,	 /* taskloop */
	TASK_UNTIED,	 /* untied, detached */
	TASK_OBJECTS,	 /* firstprivate objects with destructors */
	TASK_SET,	 /* inoutset: others write the same data meanwhile */
	TASK_CHOSEN,	 /* protect:auto left it out, protect:none all */
	TASK_RANGES,	 /* they declare memory that is not there */
	TASK_DEEP,	 /* too many executions on one stack */
	TASK_REASONS
};

enum task_bytes {
	TASK_CHECKPOINT, /* memory that checkpoints of tasks occupy, at most */
	TASK_COPIED,	 /* into them, in all */
	TASK_LOG,	 /* messages kept, in all */
	TASK_LOG_PEAK,	 /* at one time */
	TASK_BYTES
};

enum task_share {
	TASK_S_TASKS,	   /* in tasks, first executions and repeated ones; thread-seconds */
	TASK_S_PROTECTED,  /* of them, in protected ones */
	TASK_S_SERIAL,	   /* no task ran */
	TASK_S_CHECKPOINT, /* copying */
	TASK_S_RESTORE,
	TASK_S_LOST, /* executions that came to nothing */
	TASK_S_LOG,
	TASK_SHARES
};

struct task_account {
	uint64_t processes;
	uint64_t count[TASK_COUNTS], reason[TASK_REASONS], bytes[TASK_BYTES];
	double share[TASK_SHARES];
};

/* Share of errors that re-execution mends: of those that struck, or (none did) of the time in which
 * one would have struck a protected task. */
double task_account_coverage(const struct task_account *a);
void task_account_add(struct task_account *a, const struct json_value *of);
/* As an object without a name. */
void task_account_json(const struct task_account *a, struct json_out *j);

#endif
