/* SPDX-License-Identifier: BSD-3-Clause */
/* Hale's own task runtime, behind hale_task_submit(): submit.c makes tasks and knows their order,
 * pool.c has the threads that execute them.
 *
 * A task waits for `waits` others. At 0 it is ready and goes to the deque of the thread that made
 * it so. A thread takes its own newest task first: depth-first, so data is used while it is in the
 * cache and is live for a short time (seed 000, 4.2.3). One without work takes the oldest task of
 * another thread. Each deque has a lock of its own; tasks last far longer than locks are held.
 */
#ifndef HALE_TASK_RUN_H
#define HALE_TASK_RUN_H

#include <pthread.h>
#include <stdatomic.h>
#include "task/region.h"
#include "task/task.h"

struct work {
	struct work *parent; /* NULL: submitted outside of tasks; then children of `outside` */
	struct work *older, *newer; /* in a deque */
	_Atomic uint32_t refs;
	_Atomic uint32_t waits;	   /* for tasks before it, and 1 until it is submitted */
	_Atomic uint32_t children; /* that have not ended, and 1 until its body has */
	_Atomic bool over;
	pthread_mutex_t lock; /* of what follows */
	struct work **after;  /* that wait for it */
	uint32_t nafter, room;
	struct region_map regions; /* of its children */
	struct task_record record;
	bool protect;
	void (*body)(void *arg);
	size_t arg_bytes;
	char *arg;
	struct task_range ranges[];
};

/* ---- submit.c ---- */

extern struct work work_outside; /* the parent of what is submitted outside of tasks */
void work_execute(struct work *w);
/* A child of w has ended, or its body. */
void work_child_over(struct work *w);

/* ---- pool.c ---- */

void pool_start(void); /* once; more calls do nothing */
/* w is ready. */
void pool_add(struct work *w);
/* Executes tasks until *count is at most `least`. */
void pool_help(_Atomic uint32_t *count, uint32_t least);
/* Wakes threads that wait in pool_help(): a count has fallen. */
void pool_tell(void);
/* One ready task, if there is any: for a thread that makes too many. */
bool pool_help_once(void);
extern __thread struct work *pool_current; /* the task that this thread executes; NULL: none */

#endif
