/* SPDX-License-Identifier: BSD-3-Clause */
/* A task that has made others is executed again, and makes them again. So those that the attempt
 * before has made must not count.
 *
 *   a child when the parent is struck   then
 *   not begun                           it never does anything: its number of the attempt is old
 *   running                             the parent waits until it has ended; its own children run,
 *                                       since it may wait for them
 *   ended, or waited for                what it wrote lies in what the parent has copies of, or on
 *                                       the parent's stack: that goes back with the parent's data
 *
 * The parent can't be executed again if a child that has begun may have written anything else, or
 * has called MPI. Children of children count for all tasks above them.
 *
 * A child counts itself as running before it looks at the parent's attempt. The parent takes a new
 * number before it looks who is running. So one of the two sees the other. A task is over, for its
 * children, before it stops to count as running: a child that sees it run is waited for, too. */
#ifndef HALE_TASK_FAMILY_H
#define HALE_TASK_FAMILY_H

#include "task/task.h"

/* r is about to be made by the task of this thread. */
void task_family_join(struct task_record *r);
/* The task of r begins. declared: it writes what r says, and nothing else. False: it was made by an
 * attempt that does not count; it must do nothing, and has left already. */
bool task_family_enter(const struct task_record *r, bool declared);
/* There is no copy of what the task of r writes, although it is declared. So nobody counts the
 * tasks that it makes, and none of the tasks above it can be executed again. */
void task_family_uncopied(const struct task_record *r);
void task_family_leave(const struct task_record *r);
/* The task of r has called MPI. */
void task_family_spoke(const struct task_record *r);
/* In the handler of a signal: the children of f don't count any more, and none of them runs. NULL,
 * or why f can't be executed again. */
const char *task_family_stop(struct task_frame *f);
/* f is over, and has a family. */
void task_family_end(struct task_frame *f);

#endif
