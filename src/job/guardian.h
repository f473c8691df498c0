/* SPDX-License-Identifier: BSD-3-Clause */
/* A little process that outlives the agent by a moment: when the agent dies, even by SIGKILL, or
 * when the lease on the node runs out, even while the agent is stopped, it kills the process groups
 * of all ranks. It learns of the agent's death by the end of a pipe; of the groups and of the lease
 * by a shared page.
 *
 * A rank announces itself there before it becomes the program, and then looks whether the lease is
 * over; the guardian says that it is over and then looks at the groups. So no rank is missed. */
#ifndef HALE_JOB_GUARDIAN_H
#define HALE_JOB_GUARDIAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

struct guardian_page {
	_Atomic uint64_t deadline_ns; /* of guardian_clock(); 0: there is no lease */
	_Atomic uint32_t over;	      /* the lease has run out: nothing is started any more */
	_Atomic int32_t groups[];     /* 0: none */
};

struct guardian {
	pid_t pid;
	int pipe; /* its other end is in the guardian */
	struct guardian_page *page;
	uint32_t count;
	bool leased;
};

/* link: the descriptor that leads to the head, which the guardian keeps open until the ranks are
 * gone: so its end proves that they are. -1: none. leased: deadlines will be set. */
hale_status_t guardian_start(struct guardian *g, uint32_t nranks, int link, bool leased,
			     struct error *err);
static inline void guardian_watch(struct guardian *g, uint32_t rank, pid_t group)
{
	atomic_store(&g->page->groups[rank], group);
}
static inline void guardian_lease(struct guardian *g, uint64_t deadline_ns)
{
	atomic_store(&g->page->deadline_ns, deadline_ns);
}
/* Nothing is started any more. */
static inline void guardian_fence(struct guardian *g)
{
	atomic_store(&g->page->over, 1);
}
static inline bool guardian_over(const struct guardian *g)
{
	return g->page && atomic_load(&g->page->over);
}
/* Another link: a new process takes its place, and then the old one goes. */
hale_status_t guardian_relink(struct guardian *g, int link, struct error *err);
/* The ranks are gone: lets the guardian go, and reaps it. */
void guardian_end(struct guardian *g);

/* Nanoseconds that go on while the machine sleeps. */
uint64_t guardian_clock(void);

#endif
