/* SPDX-License-Identifier: BSD-3-Clause */
/* A child of the head that does what a disk may hold up, and leaves word of what came of it: who
 * grants leases doesn't wait meanwhile. Knows nothing of jobs; one child at a time each.
 *
 *   errand_begin ─▶ the child works, leaves its verdict, ends ─▶ SIGCHLD ─▶ errand_over
 *
 * A child ends with its parent. One that is killed has failed, whatever it has done. */
#ifndef HALE_HEAD_JOB_CHILD_TASK_H
#define HALE_HEAD_JOB_CHILD_TASK_H

#include <stdbool.h>
#include <sys/types.h>
#include "base/error.h"

struct errand {
	pid_t pid;	       /* 0: nobody is under way */
	struct error *verdict; /* shared with the child; NULL: no memory for that, so no children */
	const char *ended;     /* what it is for one that was killed */
};

/* Without memory for it errand_begin says no. ended: borrowed. */
void errand_init(struct errand *e, const char *ended);
/* Nobody may be under way. */
void errand_fini(struct errand *e);

/* work(arg, err) in a child, which has a copy of all that this process has. False: there can be no
 * child now, and the caller does it itself. */
bool errand_begin(struct errand *e, hale_status_t (*work)(void *arg, struct error *err), void *arg);
bool errand_busy(const struct errand *e);
/* waitpid has returned pid. True: it was the one; err gets what came of it. */
bool errand_over(struct errand *e, pid_t pid, struct error *err);
/* Waits for the end of the one that is under way. False: there was none. */
bool errand_wait(struct errand *e, struct error *err);
/* Ends it; errand_over follows. */
void errand_kill(const struct errand *e);

#endif
