/* SPDX-License-Identifier: BSD-3-Clause */
/* --tasks=inputs:keep: a copy of each block that tasks read, and of what they have written when
 * they have ended. Several tasks read the same block, so it is copied once for all of them, and
 * what memory loses of it is put back in place, for all of them, also before a task begins.
 *
 * A copy holds as long as nobody can have changed the block:
 *   a task that declares to write any of it, when it begins and when it ends;
 *   code outside of tasks: when it has waited for tasks (taskwait, barriers, hale_task_wait), when
 *   a parallel region begins, when a task was executed where it was made, when a task without
 *   copies has ended. Then the epoch is another one. */
#ifndef HALE_TASK_INPUTS_H
#define HALE_TASK_INPUTS_H

#include "task/task.h"

extern _Atomic uint64_t task_inputs_epoch;

static inline void task_inputs_changed(void)
{
	atomic_fetch_add_explicit(&task_inputs_epoch, 1, memory_order_release);
}

/* A task has been made: keeps what it declares, so that what is lost before it begins comes back,
 * too. Whoever has begun to write a block makes its copy anew at the end. */
void task_inputs_made(const struct task_record *r, uint64_t *copied);
/* Somebody has waited for tasks: reads every block that has a copy, so that lost pages are met
 * while their copies hold; then the epoch is another one. */
void task_inputs_settled(void);
/* A task without copies begins (1) or ends (-1). It may write anything, so meanwhile only what a
 * task declares itself is put back. */
void task_inputs_stranger(int change);
/* From now on such tasks may run without being counted. */
void task_inputs_unseen(void);
/* For a page that is lost: calls put(arg, block, length, copy) for every block whose copy holds. No
 * task begins to write one until task_inputs_release(). */
void task_inputs_hold(void (*put)(void *arg, const char *at, size_t length, const char *copy),
		      void *arg);
void task_inputs_release(void);
/* A task begins: keeps what it reads. Then, when what it will write has been copied, and when it
 * has ended: the copies of that don't hold any more; at the end there are new ones. */
void task_inputs_begin(const struct task_record *r, uint64_t *copied);
void task_inputs_taken(const struct task_record *r);
void task_inputs_abandon(void); /* the first one was left by longjmp: a range is no memory */
void task_inputs_end(const struct task_record *r, uint64_t *copied);
/* The copy of range i of r if it holds, NULL: there is none. */
const char *task_inputs_of(const struct task_record *r, uint32_t i);
/* Compares what r reads with the copies and puts back what differs. Returns how many blocks. */
unsigned task_inputs_mend(const struct task_record *r);
size_t task_inputs_bytes(void);

#endif
