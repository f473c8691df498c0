/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that are started again and again. Each start makes the schedule anew, under the tag
 * of the initialisation: members may start several operations in different orders (MPI-4.1, 6.13).
 */
#include <string.h>
#include "coll/near.h"

#include "coll/coll.h"
#include "coll/plans.h"
#include "coll/schedule.h"

struct persistent {
	struct coll_args args; /* its arrays are copies, in `arrays` */
	void *arrays;	       /* owned; NULL: no arrays */
	struct coll_near near;
	bool is_near;
	int tag;		  /* of each start */
	struct comm *duplicate;	  /* owned; carries its messages; NULL: its communicator does */
	struct schedule *running; /* until the next start, or the end */
};

static void type_hold(struct datatype *t, bool hold)
{
	if (t && hold)
		datatype_retain(t);
	else if (t)
		datatype_release(t);
}

/* Types and operations that the user may free meanwhile. */
static void persistent_hold(const struct persistent *p, bool hold)
{
	const struct coll_args *a = &p->args;
	for (int i = 0; p->is_near && i < p->near.nsend; i++)
		type_hold(p->near.send[i].type, hold);
	for (int i = 0; p->is_near && i < p->near.nrecv; i++)
		type_hold(p->near.recv[i].type, hold);
	if (p->is_near)
		return;
	type_hold(a->stype, hold);
	type_hold(a->rtype, hold);
	for (int i = 0; i < a->comm->peers; i++) {
		type_hold(a->stypes ? a->stypes[i] : NULL, hold);
		type_hold(a->rtypes ? a->rtypes[i] : NULL, hold);
	}
	if (a->op && hold)
		op_retain(a->op);
	else if (a->op)
		op_release(a->op);
}

static void duplicate_end(struct comm *duplicate)
{
	if (!duplicate)
		return;
	duplicate->freed = true;
	coll_comm_freed(duplicate);
	if (duplicate->local)
		coll_comm_freed(duplicate->local);
	comm_release(duplicate);
}

static void persistent_free(struct persistent *p)
{
	duplicate_end(p->duplicate);
	coll_near_free(&p->near);
	heap_free(p->arrays);
	heap_free(p);
}

static void persistent_destroy(struct request *r)
{
	struct persistent *p = r->extra;
	schedule_destroy(p->running);
	persistent_hold(p, false);
	persistent_free(p);
	r->extra = NULL;
}

static int persistent_start(struct request *r)
{
	struct persistent *p = r->extra;
	int rc;
	schedule_destroy(p->running);
	p->running = NULL;
	if (!p->is_near && plan_alone(&p->args, &rc)) {
		r->active = true;
		request_complete(r, rc);
		return MPI_SUCCESS;
	}
	p->running = schedule_create_tagged(p->duplicate ? p->duplicate : r->comm, p->tag);
	if (p->is_near)
		plan_near(p->running, &p->near);
	else
		plan_of(p->running, &p->args);
	return schedule_restart(p->running, r);
}

const struct coll_args *coll_persistent_args(const struct request *r)
{
	const struct persistent *p = r->extra;
	return r->start == persistent_start && !p->is_near ? &p->args : NULL;
}

static int persistent_make(struct persistent *p, struct comm *c, struct request **req)
{
	struct request *r = match_request_new(REQUEST_COLL, c);
	p->tag = schedule_tag_lasting(c);
	if (!r) {
		persistent_free(p);
		return MPI_ERR_NO_MEM;
	}
	persistent_hold(p, true);
	r->persistent = true;
	r->active = false;
	r->extra = p;
	r->start = persistent_start;
	r->destroy = persistent_destroy;
	*req = r;
	return MPI_SUCCESS;
}

/* The caller's arrays may be gone at the first start: a library for another ABI converts them into
 * memory of its own. So the request keeps copies. */
static bool arrays_copy(struct persistent *p)
{
	struct coll_args *a = &p->args;
	const void **numbers[] = {&a->scounts, &a->sdispls, &a->rcounts, &a->rdispls};
	struct datatype *const **types[] = {&a->stypes, &a->rtypes};
	const size_t n = (size_t)(a->comm->peers > a->comm->size ? a->comm->peers : a->comm->size);
	const size_t given =
	    (size_t)(a->comm->remote && a->kind != COLL_REDUCE_SCATTER ? a->comm->peers
								       : a->comm->size);
	const size_t width = a->wide ? sizeof(int64_t) : sizeof(int);
	char *at = p->arrays = heap_alloc(n * (2 * sizeof(void *) + 4 * width));
	if (!at)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(types); i++, at += n * sizeof(void *))
		if (*types[i])
			*types[i] = memcpy(at, *types[i], given * sizeof(void *));
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++, at += n * width)
		if (*numbers[i])
			*numbers[i] = memcpy(at, *numbers[i], given * width);
	return true;
}

int coll_init_args(const struct coll_args *a, struct comm *duplicate, struct request **req)
{
	struct persistent *p = heap_calloc(1, sizeof(*p));
	if (!p) {
		duplicate_end(duplicate);
		return MPI_ERR_NO_MEM;
	}
	p->args = *a;
	p->duplicate = duplicate;
	if ((a->rcounts || a->scounts) && !arrays_copy(p)) {
		persistent_free(p);
		return MPI_ERR_NO_MEM;
	}
	return persistent_make(p, a->comm, req);
}

int coll_near_init(struct coll_near *n, struct comm *duplicate, struct request **req)
{
	struct persistent *p = heap_calloc(1, sizeof(*p));
	if (!p) {
		duplicate_end(duplicate);
		coll_near_free(n);
		return MPI_ERR_NO_MEM;
	}
	p->near = *n;
	p->duplicate = duplicate;
	p->is_near = true;
	return persistent_make(p, n->comm, req);
}
