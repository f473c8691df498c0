/* SPDX-License-Identifier: BSD-3-Clause */
/* A task that has made others, and is executed again: they would be made twice, so those of the
 * attempt before must not count.
 *
 *   a child when the parent is struck   then
 *   not begun                           it never does anything: its number of the attempt is old
 *   running                             the parent waits until it has ended
 *   ended, or waited for                what it wrote lies in what the parent has copies of, or on
 *                                       the parent's stack: that goes back with the parent's data
 *
 * Where a child that has begun may have written anything else, or has called MPI, the parent can't
 * be executed again. Children of children count for all tasks above them.
 *
 * A child counts itself as running before it looks at the parent's attempt, and the parent takes a
 * new number before it looks who is running: one of both sees the other. */
#ifndef HALE_TASK_FAMILY_H
#define HALE_TASK_FAMILY_H

#include "task/task.h"

/* r is about to be made by the task of this thread. */
void task_family_join(struct task_record *r);
/* It begins: false: it was made by an attempt that does not count, and must do nothing; it has left
 * already. declared: what it writes is what r says. */
bool task_family_enter(const struct task_record *r, bool declared);
void task_family_leave(const struct task_record *r);
/* The task of this thread has called MPI. */
void task_family_spoke(const struct task_record *r);
/* In the handler of a signal: the children of f don't count any more, and none of them runs. NULL,
 * or why f can't be executed again. */
const char *task_family_stop(struct task_frame *f);
/* f is over. */
void task_family_end(struct task_frame *f);

#endif
