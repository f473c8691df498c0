/* SPDX-License-Identifier: BSD-3-Clause */
/* Intercommunicators: two groups that talk to each other through one context, and a local
 * communicator on each side for what a side does among itself. */
#include <string.h>
#include "mpi/comm/context.h"

/* Both leaders send and receive; `tag` is the program's or 0. */
static int leaders_swap(struct comm *bridge, int rank, int tag, const int *mine, int count,
			int *theirs, int their_count)
{
	struct request *r;
	int rc = match_irecv(theirs, (size_t)their_count, datatype_of(MPI_INT), rank,
			     context_tag(tag), bridge, MATCH_COLL, &r);
	if (rc)
		return rc;
	rc = match_send(mine, (size_t)count, datatype_of(MPI_INT), rank, context_tag(tag), bridge,
			MATCH_COLL);
	match_wait(r);
	if (!rc)
		rc = r->status.MPI_ERROR;
	match_request_free(r);
	return rc;
}

int inter_swap(struct comm *c, const int *mine, int count, int *theirs, int their_count)
{
	int rc = MPI_SUCCESS;
	if (c->rank == 0)
		rc = leaders_swap(c, 0, 0, mine, count, theirs, their_count);
	if (rc)
		return rc;
	return coll_bcast(theirs, (size_t)their_count, datatype_of(MPI_INT), 0, c->local);
}

void inter_bridge(struct comm *c, struct context_bridge *b)
{
	*b = (struct context_bridge){
	    .local = c->local,
	    .leader = 0,
	    .bridge = c,
	    .bridge_rank = 0,
	    .tag = 0,
	    .key = context_bridge_key(c->context, c->context),
	};
}

int inter_agree(struct comm *c, uint32_t *contexts)
{
	struct context_bridge b;
	inter_bridge(c, &b);
	return context_agree_bridge(&b, 2, contexts);
}

static int inter_new(struct comm *parent, struct group *local, struct group *remote,
		     const uint32_t *contexts, struct comm **out)
{
	struct comm *c = comm_create(parent, local, remote);
	if (!c) {
		context_release(contexts[0]);
		context_release(contexts[1]);
		return MPI_ERR_NO_MEM;
	}
	int rc = comm_publish_inter(c, contexts);
	if (rc)
		comm_release(c);
	else
		*out = c;
	return rc;
}

int inter_make(struct comm *c, struct group *local, struct group *remote, struct comm **out)
{
	uint32_t contexts[2];
	*out = NULL;
	int rc = inter_agree(c, contexts);
	if (rc)
		return rc;
	if (!local) {
		context_release(contexts[0]);
		context_release(contexts[1]);
		return MPI_SUCCESS;
	}
	return inter_new(c, local, remote, contexts, out);
}

/* ---- MPI_Intercomm_create ---- */

struct intercomm_meeting {
	struct comm *local, *peer; /* peer: significant at the leader only */
	int leader, remote_leader, tag;
};

/* What one side tells the other first. */
struct introduction {
	int size, context;
};

/* The other group, and its local communicator's context, known to all of us afterwards. */
static int meet(const struct intercomm_meeting *m, struct group **remote, uint32_t *context)
{
	struct comm *c = m->local;
	struct introduction us = {c->size, (int)c->context}, them = {0, 0};
	int rc = MPI_SUCCESS, *world = NULL;
	bool lead = c->rank == m->leader;
	if (lead)
		rc =
		    leaders_swap(m->peer, m->remote_leader, m->tag, (int *)&us, 2, (int *)&them, 2);
	if (!rc)
		rc = coll_bcast(&them, 2, datatype_of(MPI_INT), m->leader, c);
	if (rc)
		return rc;
	world = heap_alloc((size_t)them.size * sizeof(int));
	if (!world)
		return MPI_ERR_NO_MEM;
	if (lead)
		rc = leaders_swap(m->peer, m->remote_leader, m->tag, c->world, c->size, world,
				  them.size);
	if (!rc)
		rc = coll_bcast(world, (size_t)them.size, datatype_of(MPI_INT), m->leader, c);
	if (rc) {
		heap_free(world);
		return rc;
	}
	*context = (uint32_t)them.context;
	*remote = group_create(world, them.size);
	return *remote ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int intercomm_create(const struct intercomm_meeting *m, struct comm **out)
{
	struct group *remote, *common;
	uint32_t context, contexts[2];
	int rc = meet(m, &remote, &context);
	if (rc)
		return rc;
	rc = group_intersection(m->local->group, remote, &common);
	if (!rc) {
		if (common->size) /* both sides find that out */
			rc = MPI_ERR_COMM;
		group_release(common);
	}
	if (!rc) {
		struct context_bridge b = {
		    .local = m->local,
		    .leader = m->leader,
		    .bridge = m->peer,
		    .bridge_rank = m->remote_leader,
		    .tag = m->tag,
		    .key = context_bridge_key(m->local->context, context),
		};
		rc = context_agree_bridge(&b, 2, contexts);
	}
	if (!rc)
		rc = inter_new(m->local, m->local->group, remote, contexts, out);
	group_release(remote);
	return rc;
}

int intercomm_meet(struct comm *local, int leader, struct comm *peer, int remote_leader, int tag,
		   struct comm **out)
{
	struct intercomm_meeting m = {local, peer, leader, remote_leader, tag};
	return intercomm_create(&m, out);
}

int PMPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm,
			  int remote_leader, int tag, MPI_Comm *newintercomm)
{
	API_ENTER("MPI_Intercomm_create");
	struct intercomm_meeting m = {comm_of(local_comm), comm_of(peer_comm), local_leader,
				      remote_leader, tag};
	struct comm *out;
	if (!comm_ok(m.local) || comm_is_inter(m.local))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (local_leader < 0 || local_leader >= m.local->size || !newintercomm)
		return API_FAIL(m.local, MPI_ERR_ARG);
	if (check_send_tag(tag))
		return API_FAIL(m.local, MPI_ERR_ARG);
	if (m.local->rank == local_leader) {
		if (!comm_ok(m.peer))
			return API_FAIL(m.local, MPI_ERR_COMM);
		if (remote_leader < 0 || remote_leader >= m.peer->peers)
			return API_FAIL(m.local, MPI_ERR_ARG);
	}
	*newintercomm = MPI_COMM_NULL;
	int rc = intercomm_create(&m, &out);
	if (!rc)
		*newintercomm = comm_handle(out);
	return API_LEAVE(m.local, rc);
}
API_ALIAS(Intercomm_create);

/* ---- MPI_Intercomm_merge ---- */

/* Does our group come first? The one that said low; when both said the same, the one whose first
 * member is the older rank of the job, which both sides see alike. */
static bool we_are_first(const struct comm *c, int high, int their_high)
{
	if (high != their_high)
		return !high;
	return c->group->world[0] < c->remote->world[0];
}

static int merge(struct comm *c, int high, struct comm **out)
{
	int their_high, rc;
	uint32_t context;
	struct context_bridge b;
	struct group *all;
	high = high != 0;
	rc = inter_swap(c, &high, 1, &their_high, 1);
	if (rc)
		return rc;
	rc = we_are_first(c, high, their_high) ? group_union(c->group, c->remote, &all)
					       : group_union(c->remote, c->group, &all);
	if (rc)
		return rc;
	inter_bridge(c, &b);
	rc = context_agree_bridge(&b, 1, &context);
	struct comm *made = rc ? NULL : comm_create(c, all, NULL);
	group_release(all);
	if (rc)
		return rc;
	if (!made) {
		context_release(context);
		return MPI_ERR_NO_MEM;
	}
	rc = comm_publish(made, context);
	if (rc)
		comm_release(made);
	else
		*out = made;
	return rc;
}

int PMPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newcomm)
{
	API_ENTER("MPI_Intercomm_merge");
	struct comm *c = comm_of(intercomm), *out;
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!comm_is_inter(c))
		return API_FAIL(c, MPI_ERR_COMM);
	if (!newcomm)
		return API_FAIL(c, MPI_ERR_ARG);
	*newcomm = MPI_COMM_NULL;
	int rc = merge(c, high, &out);
	if (!rc)
		*newcomm = comm_handle(out);
	return API_LEAVE(c, rc);
}
API_ALIAS(Intercomm_merge);
