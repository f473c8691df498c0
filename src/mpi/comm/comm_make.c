/* SPDX-License-Identifier: BSD-3-Clause */
/* New communicators over some of the members of an old one: create, create_group, split. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "match/decide.h"
#include "mpi/comm/comm.h"
#include "mpi/mpi4.h"
#include "mpi/task/intask.h"

static MPI_Comm handle_or_null(struct comm *c)
{
	return c ? comm_handle(c) : MPI_COMM_NULL;
}

/* Every member of g is one of all. */
static bool subset(const struct group *g, const struct group *all)
{
	struct group *outside;
	if (g == all)
		return true;
	if (group_difference(g, all, &outside))
		return false;
	bool is = outside->size == 0;
	group_release(outside);
	return is;
}

/* The other group's choice of members, as a group of its own. */
static int remote_choice(struct comm *c, const struct group *g, struct group **remote)
{
	int n, rc = inter_swap(c, &g->size, 1, &n, 1);
	if (rc)
		return rc;
	int *world = heap_alloc((size_t)(n > 0 ? n : 1) * sizeof(int));
	if (!world)
		return MPI_ERR_NO_MEM;
	rc = inter_swap(c, g->world, g->size, world, n);
	if (rc) {
		heap_free(world);
		return rc;
	}
	*remote = group_create(world, n);
	return *remote ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int create_inter(struct comm *c, struct group *g, struct comm **out)
{
	struct group *remote;
	*out = NULL;
	int rc = remote_choice(c, g, &remote);
	if (rc)
		return rc;
	bool wanted = g->rank != MPI_UNDEFINED && remote->size > 0;
	rc = inter_make(c, wanted ? g : NULL, remote, out);
	group_release(remote);
	return rc;
}

int PMPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
	API_ENTER("MPI_Comm_create");
	struct comm *c = comm_of(comm), *out;
	struct group *g = group_of(group);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!group_ok(g) || !subset(g, c->group))
		return API_FAIL(c, MPI_ERR_GROUP);
	if (!newcomm)
		return API_FAIL(c, MPI_ERR_ARG);
	if (UNLIKELY(tasklog_now != NULL) && intask_comm_again(c, newcomm))
		return API_LEAVE(c, MPI_SUCCESS);
	int rc = comm_is_inter(c) ? create_inter(c, g, &out) : comm_make(c, g, &out);
	*newcomm = handle_or_null(rc ? NULL : out);
	if (UNLIKELY(tasklog_now != NULL) && !rc)
		intask_comm_made(c, *newcomm);
	return API_LEAVE(c, rc);
}
API_ALIAS(Comm_create);

/* Only the members of g take part: they agree by messages. */
static int create_group(struct comm *c, struct group *g, int tag, struct comm **out)
{
	uint32_t context;
	*out = NULL;
	if (g->rank == MPI_UNDEFINED)
		return MPI_SUCCESS;
	int *ranks = heap_alloc((size_t)g->size * 2 * sizeof(int));
	if (!ranks)
		return MPI_ERR_NO_MEM;
	for (int i = 0; i < g->size; i++)
		ranks[g->size + i] = i;
	int rc = group_translate(g, g->size, ranks + g->size, c->group, ranks);
	if (!rc)
		rc = context_agree_group(c, ranks, g->size, g->rank, tag, &context);
	heap_free(ranks);
	if (rc)
		return rc;
	struct comm *made = comm_create(c, g, NULL);
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

int PMPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm)
{
	API_ENTER("MPI_Comm_create_group");
	struct comm *c = comm_of(comm), *out;
	struct group *g = group_of(group);
	if (!comm_ok(c) || comm_is_inter(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (check_send_tag(tag))
		return API_FAIL(c, MPI_ERR_TAG);
	if (!group_ok(g) || !subset(g, c->group))
		return API_FAIL(c, MPI_ERR_GROUP);
	if (!newcomm)
		return API_FAIL(c, MPI_ERR_ARG);
	int rc = create_group(c, g, tag, &out);
	*newcomm = handle_or_null(rc ? NULL : out);
	return API_LEAVE(c, rc);
}
API_ALIAS(Comm_create_group);

/* ---- split ---- */

struct comm_make_wish {
	int color, key;
};

struct comm_make_place {
	int key, rank;
};

static int by_key(const void *a, const void *b)
{
	const struct comm_make_place *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Those of g who wish for that color, in order. */
static int color_group(const struct group *g, const struct comm_make_wish *wishes, int color,
		       struct group **out)
{
	struct comm_make_place *places = heap_alloc((size_t)g->size * sizeof(*places));
	int *world = heap_alloc((size_t)g->size * sizeof(int)), n = 0;
	*out = NULL;
	if (!places || !world) {
		heap_free(places);
		heap_free(world);
		return MPI_ERR_NO_MEM;
	}
	for (int i = 0; i < g->size; i++)
		if (wishes[i].color == color)
			places[n++] = (struct comm_make_place){wishes[i].key, i};
	qsort(places, (size_t)n, sizeof(*places), by_key);
	for (int i = 0; i < n; i++)
		world[i] = g->world[places[i].rank];
	heap_free(places);
	*out = group_create(world, n);
	return *out ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int split_intra(struct comm *c, struct comm_make_wish mine, struct comm_make_wish *all,
		       struct comm **out)
{
	struct group *g = NULL;
	int rc = coll_allgather(&mine, 2, datatype_of(MPI_INT), all, 2, datatype_of(MPI_INT), c);
	if (!rc && mine.color != MPI_UNDEFINED)
		rc = color_group(c->group, all, mine.color, &g);
	if (!rc)
		rc = comm_make(c, g, out);
	if (g)
		group_release(g);
	return rc;
}

static int split_inter(struct comm *c, struct comm_make_wish mine, struct comm_make_wish *all,
		       struct comm_make_wish *theirs, struct comm **out)
{
	struct group *local = NULL, *remote = NULL;
	int rc =
	    coll_allgather(&mine, 2, datatype_of(MPI_INT), all, 2, datatype_of(MPI_INT), c->local);
	if (!rc)
		rc = inter_swap(c, (int *)all, 2 * c->size, (int *)theirs, 2 * c->peers);
	if (!rc && mine.color != MPI_UNDEFINED) {
		rc = color_group(c->group, all, mine.color, &local);
		if (!rc)
			rc = color_group(c->remote, theirs, mine.color, &remote);
	}
	if (!rc)
		rc = inter_make(c, remote && remote->size ? local : NULL, remote, out);
	if (local)
		group_release(local);
	if (remote)
		group_release(remote);
	return rc;
}

static int split(struct comm *c, int color, int key, MPI_Comm *newcomm)
{
	if (UNLIKELY(tasklog_now != NULL) && intask_comm_again(c, newcomm))
		return MPI_SUCCESS;
	struct comm *out = NULL;
	struct comm_make_wish mine = {color, key};
	struct comm_make_wish *all =
	    heap_alloc(((size_t)c->size + (size_t)c->peers) * sizeof(*all));
	*newcomm = MPI_COMM_NULL;
	if (!all)
		return MPI_ERR_NO_MEM;
	int rc = comm_is_inter(c) ? split_inter(c, mine, all, all + c->size, &out)
				  : split_intra(c, mine, all, &out);
	heap_free(all);
	*newcomm = handle_or_null(rc ? NULL : out);
	if (UNLIKELY(tasklog_now != NULL) && !rc)
		intask_comm_made(c, *newcomm);
	return rc;
}

int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
	API_ENTER("MPI_Comm_split");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if ((color < 0 && color != MPI_UNDEFINED) || !newcomm)
		return API_FAIL(c, MPI_ERR_ARG);
	return API_LEAVE(c, split(c, color, key, newcomm));
}
API_ALIAS(Comm_split);

/* With replicas a rank lives where its leader does, which is whom MPI_Get_processor_name names. */
static bool lives_here(uint32_t rank)
{
	struct segment *s = link_self()->segment;

	if (LIKELY(!redundant_on))
		return segment_here(s, rank);
	for (uint32_t p = rank; p < s->nranks; p += link_self()->nranks)
		if (!atomic_load(&segment_mailbox(s, p)->lost))
			return segment_here(s, p);
	return false;
}

struct node_members {
	int32_t first; /* the first member that lives on this node */
	int32_t count; /* members that do */
};

/* After a restart elsewhere these are others, which leaves communicators made before as they are.
 * Each replica would see those of its own node, and then send to others than its mates: so the
 * leader's answer counts. */
static struct node_members node_members(const struct comm *c)
{
	struct node_members m = {c->rank, 0};
	for (int i = c->size - 1; i >= 0; i--)
		if (i == c->rank || lives_here((uint32_t)c->group->world[i])) {
			m.first = i;
			m.count++;
		}
	if (UNLIKELY(redundant_on))
		decide_value(DECIDE_NODE, &m, sizeof(m));
	return m;
}

static int node_color(const struct comm *c)
{
	return node_members(c).first;
}

/* The color for what a type of split holds together. Which core or cache a rank has changes from
 * restart to restart, so at those levels everybody is alone. */
static int type_color(const struct comm *c, int type)
{
	switch (type) {
	case MPI_COMM_TYPE_SHARED:
	case OMPI_COMM_TYPE_HOST:
	case OMPI_COMM_TYPE_BOARD:
		return node_color(c);
	case OMPI_COMM_TYPE_CU:
	case OMPI_COMM_TYPE_CLUSTER:
		return 0;
	case OMPI_COMM_TYPE_HWTHREAD:
	case OMPI_COMM_TYPE_CORE:
	case OMPI_COMM_TYPE_L1CACHE:
	case OMPI_COMM_TYPE_L2CACHE:
	case OMPI_COMM_TYPE_L3CACHE:
	case OMPI_COMM_TYPE_SOCKET:
	case OMPI_COMM_TYPE_NUMA:
		return c->rank;
	default:
		return MPI_UNDEFINED;
	}
}

/* MPI-4.1 7.4.2: by the resource that the info object names; by none: MPI_COMM_NULL. */
static int guided_color(const struct comm *c, int split_type, MPI_Info info)
{
	const struct info *i = info == MPI_INFO_NULL ? NULL : info_of(info);
	const char *kind = i ? info_get(i, "mpi_hw_resource_type") : NULL;
	const char *set = i && split_type == MPI_COMM_TYPE_RESOURCE_GUIDED
			      ? info_get(i, "mpi_pset_name")
			      : NULL;
	if (kind && !strcmp(kind, "mpi_shared_memory"))
		return node_color(c);
	if (set && !strcasecmp(set, "mpi://WORLD"))
		return 0;
	if (set && !strcasecmp(set, "mpi://SELF"))
		return c->rank;
	return MPI_UNDEFINED;
}

/* The nodes are the only parts that this library tells apart. */
static int unguided_color(const struct comm *c, MPI_Info info)
{
	struct node_members here = node_members(c);
	if (here.count == c->size)
		return MPI_UNDEFINED;
	if (info != MPI_INFO_NULL)
		info_set(info_of(info), "mpi_hw_resource_type", "mpi_shared_memory");
	return here.first;
}

int PMPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm)
{
	API_ENTER("MPI_Comm_split_type");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!info_ok(info_of(info)) && info != MPI_INFO_NULL)
		return API_FAIL(c, MPI_ERR_INFO);
	int color = split_type == MPI_COMM_TYPE_HW_GUIDED ||
			    split_type == MPI_COMM_TYPE_RESOURCE_GUIDED
			? guided_color(c, split_type, info)
		    : split_type == MPI_COMM_TYPE_HW_UNGUIDED ? unguided_color(c, info)
							     : type_color(c, split_type);
	bool guided = split_type >= MPI_COMM_TYPE_HW_UNGUIDED &&
		      split_type <= MPI_COMM_TYPE_RESOURCE_GUIDED;
	if ((color == MPI_UNDEFINED && split_type != MPI_UNDEFINED && !guided) || !newcomm)
		return API_FAIL(c, MPI_ERR_ARG);
	return API_LEAVE(c, split(c, color, key, newcomm));
}
API_ALIAS(Comm_split_type);
