/* SPDX-License-Identifier: BSD-3-Clause */
/* <hale/task.h>: tasks that are executed again when memory errors strike them. Programs that clang
 * has built with OpenMP tasks need nothing of this under `hale run --tasks`. Link with -lhale_task
 * (from lib/hale). docs/tasks.md. */
#ifndef HALE_TASK_H
#define HALE_TASK_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Says that a checker of the program's has found data of this task to be wrong. In a task that is
 * protected it does not return: the task begins again with the data that it began with. Elsewhere
 * the process ends by SIGBUS, and the job goes back to its newest checkpoint. */
void HALE_Raise_DUE(void) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif

#endif
