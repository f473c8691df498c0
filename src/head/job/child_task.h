/* SPDX-License-Identifier: BSD-3-Clause */
/* A child of the head that does what a disk may hold up, and leaves word of what came of it: who
 * grants leases doesn't wait meanwhile. Knows nothing of jobs; one child at a time each.
 *
 *   child_task_begin ─▶ the child works, leaves its verdict, ends ─▶ SIGCHLD ─▶ child_task_over
 *
 * A child ends with its parent. One that is killed has failed, whatever it has done. */
#ifndef HALE_HEAD_JOB_CHILD_TASK_H
#define HALE_HEAD_JOB_CHILD_TASK_H

#include <stdbool.h>
#include <sys/types.h>
#include "base/error.h"

struct child_task {
	pid_t pid;	       /* 0: nobody is under way */
	struct error *verdict; /* shared with the child; NULL: no memory for that, so no children */
	const char *ended;     /* what it is for one that was killed */
};

/* Without memory for it child_task_begin says no. ended: borrowed. */
void child_task_init(struct child_task *e, const char *ended);
/* Nobody may be under way. */
void child_task_fini(struct child_task *e);

/* work(arg, err) in a child, which has a copy of all that this process has. False: there can be no
 * child now, and the caller does it itself. */
bool child_task_begin(struct child_task *e, hale_status_t (*work)(void *arg, struct error *err),
		      void *arg);
bool child_task_busy(const struct child_task *e);
/* waitpid has returned pid. True: it was the one; err gets what came of it. */
bool child_task_over(struct child_task *e, pid_t pid, struct error *err);
/* Waits for the end of the one that is under way. False: there was none. */
bool child_task_wait(struct child_task *e, struct error *err);
/* Ends it; child_task_over follows. */
void child_task_kill(const struct child_task *e);

#endif
