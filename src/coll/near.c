/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of neighbours: one round of messages. */
#include "coll/near.h"

#include "coll/schedule.h"
#include "coll/plans.h"

bool coll_near_alloc(struct coll_near *n, struct comm *c, int nsend, int nrecv)
{
	size_t all = (size_t)nsend + (size_t)nrecv;
	size_t ranks = ALIGN_UP(all * sizeof(int) + 1, 16);
	char *memory = heap_calloc(1, ranks + all * sizeof(struct coll_block));
	*n = (struct coll_near){.comm = c};
	if (!memory)
		return false;
	n->to = (int *)memory;
	n->from = n->to + nsend;
	n->send = (struct coll_block *)(memory + ranks);
	n->recv = n->send + nsend;
	return true;
}

void coll_near_free(struct coll_near *n)
{
	heap_free(n->to);
	n->to = NULL;
}

struct schedule *plan_near(struct schedule *s, const struct coll_near *n)
{
	for (int i = 0; i < n->nrecv && s; i++)
		schedule_recv(s, n->recv[i], n->from[i]);
	for (int i = 0; i < n->nsend && s; i++)
		schedule_send(s, n->send[i], n->to[i]);
	return s;
}

int coll_near_run(const struct coll_near *n)
{
	return schedule_run(plan_near(schedule_create(n->comm), n));
}

int coll_near_start(const struct coll_near *n, struct request **req)
{
	return schedule_start(plan_near(schedule_create(n->comm), n), req);
}
