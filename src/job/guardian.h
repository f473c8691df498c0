/* SPDX-License-Identifier: BSD-3-Clause */
/* A little process that outlives the head by a moment: when the head dies, even by SIGKILL, it
 * kills the process groups of all ranks. It learns of the head's death by the end of a pipe and
 * of the groups by a shared page that only the head writes. */
#ifndef HALE_JOB_GUARDIAN_H
#define HALE_JOB_GUARDIAN_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

struct guardian {
	pid_t pid;
	int pipe;		 /* its other end is in the guardian */
	_Atomic int32_t *groups; /* [count]; 0: none */
	uint32_t count;
};

hale_status_t guardian_start(struct guardian *g, uint32_t nranks, struct error *err);
static inline void guardian_watch(struct guardian *g, uint32_t rank, pid_t group)
{
	atomic_store(&g->groups[rank], group);
}
/* The ranks are gone: lets the guardian go, and reaps it. */
void guardian_end(struct guardian *g);

#endif
