/* SPDX-License-Identifier: BSD-3-Clause */
/* --tasks=check:writes: which tasks write what they do not declare? One task at a time runs while
 * all other memory of the program is write-protected; a write there is said with the task's source
 * line, once, and goes on. For looking, not for production: it is slow, and sees whole pages only.
 */
#ifndef HALE_TASK_CHECK_H
#define HALE_TASK_CHECK_H

#include "task/task.h"

/* In the program's first thread. */
void task_check_init(void);
/* Around the execution of a task, if task_settings.check_writes. */
void task_check_begin(struct task_frame *f);
void task_check_end(struct task_frame *f);
/* The thread goes into MPI: the rest of its task is not looked at, since the kernel may write for
 * MPI and would be refused. */
void task_check_leave(void);
/* In the handler of SIGSEGV. True: the write may go on. */
bool task_check_fault(struct task_thread *t, uintptr_t at, const void *context);

#endif
