/* SPDX-License-Identifier: BSD-3-Clause */
/* <hale/task.h>: tasks that are executed again when memory errors strike them (docs/tasks.md).
 *
 * Programs that clang has built with OpenMP tasks need nothing of this under `hale run --tasks`.
 * Others give their tasks to hale_task_submit(). Link with -lhale_task (from lib/hale); the program
 * runs with and without `hale run`. */
#ifndef HALE_TASK_H
#define HALE_TASK_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Says that a checker of the program's has found data of this task to be wrong. In a task that is
 * protected it does not return: the task begins again with the data that it began with. Elsewhere
 * the process ends by SIGBUS, and the job goes back to its newest checkpoint. Any thread. */
void HALE_Raise_DUE(void) __attribute__((noreturn));

/* What a task does with a range of memory. OUT: what was there before does not matter, so Hale
 * keeps no copy of it; the task writes all of the range. */
enum hale_task_use { HALE_TASK_IN = 1, HALE_TASK_OUT = 2, HALE_TASK_INOUT = 3 };

struct hale_task_range {
	void *at;
	size_t length; /* bytes */
	enum hale_task_use use;
};

/* Makes a task of body(copy of arg). It runs when the tasks submitted before it by the same task
 * (or outside of tasks) that write what it uses, or use what it writes, have ended; ranges may
 * overlap in any way. A task may change its copy of arg, and must declare all other memory that it
 * writes; what it reads only, it should declare, since that orders it.
 *
 * body     called once on some thread; again, after everything that it wrote was restored, if a
 *          memory error strikes it
 * arg      arg_bytes bytes, copied before the call returns; NULL if arg_bytes is 0
 * ranges   count of them, copied
 *
 * Returns 0, or ENOMEM, EINVAL. Never waits, but may execute tasks on the calling thread when very
 * many are waiting. Tasks may submit tasks, which are their children; a task ends when its
 * children have ended. Starts the threads at the first call: as many as HALE_TASK_THREADS or
 * OMP_NUM_THREADS says, or one for each core that the process may use, the caller's included.
 * Any thread may call it. Seed 002, section 6; design: OpenMP 5.0, 2.17.11 for the order. */
int hale_task_submit(void (*body)(void *arg), const void *arg, size_t arg_bytes,
		     const struct hale_task_range *ranges, size_t count);

/* Returns when all tasks that the calling task (outside of tasks: anybody outside) has submitted
 * have ended; executes tasks meanwhile. */
void hale_task_wait(void);

/* The threads that execute tasks, the calling one included; and the number of the calling one,
 * from 0, or -1 for a thread that waits for none of them. */
int hale_task_threads(void);
int hale_task_thread(void);

#ifdef __cplusplus
}
#endif

#endif
