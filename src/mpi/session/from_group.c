/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators out of groups, without one that its members have in common. */
#include <string.h>
#include "mpi/session/session.h"

/* Tags of the program (MPI_Comm_create_group) and those of worlds that meet are below. */
enum { FROM_GROUP_TAGS = 0x20000000 };

/* The same at all who say the same string. */
static int string_tag(const char *text)
{
	uint32_t hash = 2166136261u;
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return (int)(FROM_GROUP_TAGS | (hash & (FROM_GROUP_TAGS - 1)));
}

/* Where members of any group reach each other. Jobs with replicas have one world only. */
static struct comm *meeting_place(void)
{
	return world_all() ? world_all() : COMM_WORLD;
}

/* The place of each member in the meeting place; NULL: no memory. */
static int *places_of(const struct group *g)
{
	int *ranks = heap_alloc((size_t)g->size * sizeof(int));
	for (int i = 0; ranks && i < g->size; i++)
		ranks[i] = g->world[i];
	return ranks;
}

static int make(struct group *g, int tag, struct errhandler *e, struct comm **out)
{
	uint32_t context;
	int *ranks = places_of(g);
	if (!ranks)
		return MPI_ERR_NO_MEM;
	int rc = context_agree_group(meeting_place(), ranks, g->size, g->rank, tag, &context);
	heap_free(ranks);
	if (rc)
		return rc;
	struct comm *made = comm_create(COMM_WORLD, g, NULL);
	if (!made) {
		context_release(context);
		return MPI_ERR_NO_MEM;
	}
	object_retain(&e->obj);
	errhandler_release(made->errhandler);
	made->errhandler = e;
	rc = comm_publish(made, context);
	if (rc)
		comm_release(made);
	else
		*out = made;
	return rc;
}

/* An error in making goes to the handler that the communicator would have had. */
static int from_group_leave(struct errhandler *e, int rc, const char *function)
{
	profile_leave();
	guard_leave();
	return rc ? errhandler_run(e, ERRHANDLER_COMM, MPI_COMM_NULL, rc, function) : MPI_SUCCESS;
}

static int arguments_check(const struct group *g, const char *stringtag, MPI_Info info)
{
	if (!group_ok(g))
		return MPI_ERR_GROUP;
	if (!stringtag)
		return MPI_ERR_ARG;
	if (info != MPI_INFO_NULL && !info_ok(info_of(info)))
		return MPI_ERR_INFO;
	/* a member makes it; whoever is not in the group passes the empty one */
	return g->size && g->rank == MPI_UNDEFINED ? MPI_ERR_GROUP : MPI_SUCCESS;
}

int PMPI_Comm_create_from_group(MPI_Group group, const char *stringtag, MPI_Info info,
				MPI_Errhandler errhandler, MPI_Comm *newcomm)
{
	API_ENTER("MPI_Comm_create_from_group");
	struct group *g = group_of(group);
	struct errhandler *e = errhandler_of(errhandler);
	struct comm *made = NULL;
	if (!errhandler_fits(e, ERRHANDLER_COMM))
		return API_FAIL(NULL, MPI_ERR_ARG);
	int rc = newcomm ? arguments_check(g, stringtag, info) : MPI_ERR_ARG;
	if (newcomm)
		*newcomm = MPI_COMM_NULL;
	if (!rc && g->size)
		rc = make(g, string_tag(stringtag), e, &made);
	if (!rc && made && info != MPI_INFO_NULL)
		comm_hints_set(made, info_of(info));
	if (!rc && made)
		*newcomm = comm_handle(made);
	return from_group_leave(e, rc, api_name);
}
API_ALIAS(Comm_create_from_group);

static bool groups_meet(const struct group *a, const struct group *b)
{
	struct group *both;
	if (group_intersection(a, b, &both))
		return true;
	bool meet = both->size > 0;
	group_release(both);
	return meet;
}

/* The remote group matters at the leader only, and what is wrong with it concerns all. */
static int leader_finds(struct comm *ours, int leader, const struct group *remote,
			int remote_leader)
{
	int found = MPI_SUCCESS;
	if (ours->rank == leader) {
		if (!group_ok(remote) || groups_meet(ours->group, remote))
			found = MPI_ERR_GROUP;
		else if (remote_leader < 0 || remote_leader >= remote->size)
			found = MPI_ERR_ARG;
	}
	int rc = coll_bcast(&found, 1, datatype_of(MPI_INT), leader, ours);
	return rc ? rc : found;
}

int PMPI_Intercomm_create_from_groups(MPI_Group local_group, int local_leader,
				      MPI_Group remote_group, int remote_leader,
				      const char *stringtag, MPI_Info info,
				      MPI_Errhandler errhandler, MPI_Comm *newintercomm)
{
	API_ENTER("MPI_Intercomm_create_from_groups");
	struct group *local = group_of(local_group), *remote = group_of(remote_group);
	struct errhandler *e = errhandler_of(errhandler);
	struct comm *ours = NULL, *made = NULL;
	if (!errhandler_fits(e, ERRHANDLER_COMM))
		return API_FAIL(NULL, MPI_ERR_ARG);
	int rc = newintercomm ? arguments_check(local, stringtag, info) : MPI_ERR_ARG;
	if (newintercomm)
		*newintercomm = MPI_COMM_NULL;
	if (!rc && local->size == 0)
		return from_group_leave(e, MPI_SUCCESS, api_name);
	if (!rc && (local_leader < 0 || local_leader >= local->size))
		rc = MPI_ERR_ARG;
	if (!rc)
		rc = make(local, string_tag(stringtag), e, &ours);
	if (!rc) {
		rc = leader_finds(ours, local_leader, remote, remote_leader);
		if (!rc)
			rc = intercomm_meet(
			    ours, local_leader, meeting_place(),
			    ours->rank == local_leader ? remote->world[remote_leader] : 0,
			    string_tag(stringtag) ^ 1, &made);
		comm_end(ours);
	}
	if (!rc)
		*newintercomm = comm_handle(made);
	return from_group_leave(e, rc, api_name);
}
API_ALIAS(Intercomm_create_from_groups);
