/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators: how they are born, found and buried. */
#include <string.h>
#include "match/match.h"
#include "mpi/comm/context.h"
#include "object/session.h"

static struct comm *by_context[CONTEXT_IDS];

struct comm *comm_by_context(uint32_t context)
{
	return context < COMM_CONTEXT_MAX ? by_context[context / COMM_CONTEXTS] : NULL;
}

static void set_groups(struct comm *c, struct group *local, struct group *remote)
{
	group_retain(local);
	if (remote)
		group_retain(remote);
	c->group = local;
	c->remote = remote;
	c->rank = local->rank;
	c->size = local->size;
	c->world = remote ? remote->world : local->world;
	c->peers = remote ? remote->size : local->size;
	c->cxx_flags = remote ? COMM_CXX_INTER : 0;
}

struct comm *comm_create(struct comm *parent, struct group *local, struct group *remote)
{
	struct comm *c = heap_calloc(1, COMM_BYTES);
	if (!c)
		return NULL;
	object_init(&c->obj, OBJECT_COMM);
	set_groups(c, local, remote);
	c->context = COMM_CONTEXT_MAX; /* none yet */
	c->errhandler = parent->errhandler;
	object_retain(&c->errhandler->obj);
	c->session = session_retain(local->session ? local->session : parent->session);
	return c;
}

int comm_publish(struct comm *c, uint32_t context)
{
	c->context = context;
	int rc = coll_comm_create(c);
	if (rc) {
		context_release(context);
		c->context = COMM_CONTEXT_MAX;
		return rc;
	}
	by_context[context / COMM_CONTEXTS] = c;
	return MPI_SUCCESS;
}

int comm_publish_inter(struct comm *c, const uint32_t *contexts)
{
	c->local = comm_create(c, c->group, NULL);
	int rc = c->local ? comm_publish(c->local, contexts[1]) : MPI_ERR_NO_MEM;
	if (rc) {
		if (!c->local)
			context_release(contexts[1]);
		context_release(contexts[0]);
		return rc;
	}
	return comm_publish(c, contexts[0]);
}

int comm_make(struct comm *parent, struct group *group, struct comm **out)
{
	uint32_t context;
	*out = NULL;
	int rc = context_agree(parent, &context);
	if (rc)
		return rc;
	if (!group || group->rank == MPI_UNDEFINED) {
		context_release(context);
		return MPI_SUCCESS;
	}
	struct comm *c = comm_create(parent, group, NULL);
	if (!c) {
		context_release(context);
		return MPI_ERR_NO_MEM;
	}
	rc = comm_publish(c, context);
	if (rc) {
		comm_release(c);
		return rc;
	}
	*out = c;
	return MPI_SUCCESS;
}

/* What a communicator holds; what is left is the bare object. */
static void release_parts(struct comm *c)
{
	if (c->context != COMM_CONTEXT_MAX) {
		coll_comm_destroy(c);
		by_context[c->context / COMM_CONTEXTS] = NULL;
		context_release(c->context);
	}
	if (c->local)
		comm_release(c->local);
	if (c->remote)
		group_release(c->remote);
	group_release(c->group);
	errhandler_release(c->errhandler);
	topology_release(c->topo);
	info_release(c->info);
	session_release(c->session);
	heap_free(c->buffer); /* no message is in it: each held a reference to c */
	c->session = NULL;
	c->buffer = NULL;
	c->local = NULL;
	c->remote = c->group = NULL;
	c->errhandler = NULL;
	c->topo = NULL;
	c->info = NULL;
	c->context = COMM_CONTEXT_MAX;
}

void comm_release(struct comm *c)
{
	if (!object_drop(&c->obj))
		return;
	object_forget_fortran(&c->obj);
	release_parts(c);
	c->obj.kind = OBJECT_FREED;
	heap_free(c);
}

void comm_set_topology(struct comm *c, struct topology *topo)
{
	c->topo = topo;
	if (topo->kind == MPI_CART)
		c->cxx_flags |= COMM_CXX_CART;
	else if (topo->kind == MPI_GRAPH)
		c->cxx_flags |= COMM_CXX_GRAPH;
}

/* ---- the two that are always there ---- */

/* Takes over world. */
static int predefine(struct comm *c, uint32_t context, int *world, int size)
{
	struct group *g = world ? group_create(world, size) : NULL;
	if (!g)
		return MPI_ERR_NO_MEM;
	set_groups(c, g, NULL);
	group_release(g); /* the communicator has it */
	c->errhandler = errhandler_of(MPI_ERRORS_ARE_FATAL);
	context_reserve(context);
	return comm_publish(c, context);
}

void comm_know(struct comm *c, uint32_t context)
{
	c->context = context;
	context_reserve(context);
	by_context[context / COMM_CONTEXTS] = c;
}

void comm_unknow(struct comm *c)
{
	by_context[c->context / COMM_CONTEXTS] = NULL;
	context_release(c->context);
	c->context = COMM_CONTEXT_MAX;
	comm_release(c);
}

int comm_module_init(void)
{
	int size = 0, *self = heap_alloc(sizeof(int)), *world = world_members(&size);
	if (self)
		*self = (int)link_self()->rank;
	context_init();
	COMM_WORLD->context = COMM_SELF->context = COMM_CONTEXT_MAX;
	int rc = predefine(COMM_WORLD, 0, world, size);
	if (!rc)
		rc = predefine(COMM_SELF, COMM_CONTEXTS, self, 1);
	return rc ? rc : world_all_make();
}

/* MPI-3.1 8.7.1: the attributes of MPI_COMM_SELF go first, while everything still works, and their
 * callbacks may communicate: hence the barrier behind them. */
void comm_module_leave(bool stays)
{
	attr_delete_all(ATTR_COMM, COMM_SELF, &COMM_SELF->attrs);
	attr_delete_all(ATTR_COMM, COMM_WORLD, &COMM_WORLD->attrs);
	coll_finish(COMM_WORLD, stays);
}

void comm_module_fini(void)
{
	world_all_end();
	release_parts(COMM_SELF);
	release_parts(COMM_WORLD);
}
