/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Group_*. */
#include "mpi/comm/comm.h"
#include "mpi/task/intask.h"
#include "object/session.h"

int PMPI_Group_size(MPI_Group group, int *size)
{
	API_ENTER("MPI_Group_size");
	struct group *g = group_of(group);
	if (!group_ok(g))
		return API_FAIL(NULL, MPI_ERR_GROUP);
	if (!size)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*size = g->size;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Group_size);

int PMPI_Group_rank(MPI_Group group, int *rank)
{
	API_ENTER("MPI_Group_rank");
	struct group *g = group_of(group);
	if (!group_ok(g))
		return API_FAIL(NULL, MPI_ERR_GROUP);
	if (!rank)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*rank = g->rank;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Group_rank);

int PMPI_Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2,
			       int ranks2[])
{
	API_ENTER("MPI_Group_translate_ranks");
	struct group *a = group_of(group1), *b = group_of(group2);
	if (!group_ok(a) || !group_ok(b))
		return API_FAIL(NULL, MPI_ERR_GROUP);
	if (n < 0)
		return API_FAIL(NULL, MPI_ERR_GROUP);
	if (n > 0 && (!ranks1 || !ranks2))
		return API_FAIL(NULL, MPI_ERR_GROUP);
	return API_LEAVE(NULL, group_translate(a, n, ranks1, b, ranks2));
}
API_ALIAS(Group_translate_ranks);

int PMPI_Group_compare(MPI_Group group1, MPI_Group group2, int *result)
{
	API_ENTER("MPI_Group_compare");
	struct group *a = group_of(group1), *b = group_of(group2);
	if (!group_ok(a) || !group_ok(b))
		return API_FAIL(NULL, MPI_ERR_GROUP);
	if (!result)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*result = group_compare(a, b);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Group_compare);

static void group_end_late(void *g)
{
	group_release(g);
}

int PMPI_Group_free(MPI_Group *group)
{
	API_ENTER("MPI_Group_free");
	if (!group || !group_ok(group_of(*group)))
		return API_FAIL(NULL, MPI_ERR_GROUP);
	if (UNLIKELY(tasklog_now != NULL))
		intask_free(group_of(*group), group_end_late);
	else
		group_release(group_of(*group));
	*group = MPI_GROUP_NULL;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Group_free);

/* A group that was made of others belongs to their session. */
static MPI_Group group_of_session(struct group *made, const struct group *from)
{
	if (!made->session && made != from && !(made->obj.flags & OBJECT_PREDEFINED))
		made->session = session_retain(from->session);
	return group_handle(made);
}

typedef int(set_operation_t)(const struct group *a, const struct group *b, struct group **out);

static int combine(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup,
		   set_operation_t *operation)
{
	struct group *a = group_of(group1), *b = group_of(group2), *out;
	if (!group_ok(a) || !group_ok(b) || !newgroup)
		return MPI_ERR_GROUP;
	int rc = operation(a, b, &out);
	if (!rc)
		*newgroup = group_of_session(out, a);
	return rc;
}

int PMPI_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
	API_ENTER("MPI_Group_union");
	return API_LEAVE(NULL, combine(group1, group2, newgroup, group_union));
}
API_ALIAS(Group_union);

int PMPI_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
	API_ENTER("MPI_Group_intersection");
	return API_LEAVE(NULL, combine(group1, group2, newgroup, group_intersection));
}
API_ALIAS(Group_intersection);

int PMPI_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
	API_ENTER("MPI_Group_difference");
	return API_LEAVE(NULL, combine(group1, group2, newgroup, group_difference));
}
API_ALIAS(Group_difference);

static int by_ranks(MPI_Group group, int n, const int *ranks, MPI_Group *newgroup, bool include)
{
	struct group *g = group_of(group), *out;
	if (!group_ok(g) || !newgroup)
		return MPI_ERR_GROUP;
	if (n < 0)
		return MPI_ERR_GROUP;
	if (n > g->size || (n > 0 && !ranks))
		return MPI_ERR_RANK;
	int rc = include ? group_incl(g, n, ranks, &out) : group_excl(g, n, ranks, &out);
	if (!rc)
		*newgroup = group_of_session(out, g);
	return rc;
}

int PMPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
	API_ENTER("MPI_Group_incl");
	return API_LEAVE(NULL, by_ranks(group, n, ranks, newgroup, true));
}
API_ALIAS(Group_incl);

int PMPI_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
	API_ENTER("MPI_Group_excl");
	return API_LEAVE(NULL, by_ranks(group, n, ranks, newgroup, false));
}
API_ALIAS(Group_excl);

static int by_ranges(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup, bool include)
{
	struct group *g = group_of(group), *out;
	if (!group_ok(g) || !newgroup)
		return MPI_ERR_GROUP;
	if (n < 0 || (n > 0 && !ranges))
		return MPI_ERR_ARG;
	int rc =
	    include ? group_range_incl(g, n, ranges, &out) : group_range_excl(g, n, ranges, &out);
	if (!rc)
		*newgroup = group_of_session(out, g);
	return rc;
}

int PMPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
	API_ENTER("MPI_Group_range_incl");
	return API_LEAVE(NULL, by_ranges(group, n, ranges, newgroup, true));
}
API_ALIAS(Group_range_incl);

int PMPI_Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
	API_ENTER("MPI_Group_range_excl");
	return API_LEAVE(NULL, by_ranges(group, n, ranges, newgroup, false));
}
API_ALIAS(Group_range_excl);
