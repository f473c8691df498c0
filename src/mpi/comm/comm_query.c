/* SPDX-License-Identifier: BSD-3-Clause */
/* What one can ask a communicator, and its name and hints. */
#include <string.h>
#include "mpi/comm/comm.h"

int PMPI_Comm_size(MPI_Comm comm, int *size)
{
	API_ENTER("MPI_Comm_size");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!size)
		return API_FAIL(c, MPI_ERR_ARG);
	*size = c->size;
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Comm_size);

int PMPI_Comm_rank(MPI_Comm comm, int *rank)
{
	API_ENTER("MPI_Comm_rank");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!rank)
		return API_FAIL(c, MPI_ERR_ARG);
	*rank = c->rank;
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Comm_rank);

int PMPI_Comm_test_inter(MPI_Comm comm, int *flag)
{
	API_ENTER("MPI_Comm_test_inter");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!flag)
		return API_FAIL(c, MPI_ERR_ARG);
	*flag = comm_is_inter(c);
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Comm_test_inter);

int PMPI_Comm_remote_size(MPI_Comm comm, int *size)
{
	API_ENTER("MPI_Comm_remote_size");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!size)
		return API_FAIL(c, MPI_ERR_ARG);
	*size = c->peers; /* Open MPI lets intracommunicators through: their own size */
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Comm_remote_size);

int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
	API_ENTER("MPI_Comm_group");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!group)
		return API_FAIL(c, MPI_ERR_ARG);
	group_retain(c->group);
	*group = group_handle(c->group);
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Comm_group);

int PMPI_Comm_remote_group(MPI_Comm comm, MPI_Group *group)
{
	API_ENTER("MPI_Comm_remote_group");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!group)
		return API_FAIL(c, MPI_ERR_ARG);
	if (!comm_is_inter(c))
		return API_FAIL(c, MPI_ERR_COMM);
	group_retain(c->remote);
	*group = group_handle(c->remote);
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Comm_remote_group);

static int compare(const struct comm *a, const struct comm *b)
{
	if (a == b)
		return MPI_IDENT;
	if (comm_is_inter(a) != comm_is_inter(b))
		return MPI_UNEQUAL;
	int local = group_compare(a->group, b->group);
	int remote = comm_is_inter(a) ? group_compare(a->remote, b->remote) : MPI_IDENT;
	if (local == MPI_UNEQUAL || remote == MPI_UNEQUAL)
		return MPI_UNEQUAL;
	return local == MPI_IDENT && remote == MPI_IDENT ? MPI_CONGRUENT : MPI_SIMILAR;
}

int PMPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result)
{
	API_ENTER("MPI_Comm_compare");
	struct comm *a = comm_of(comm1), *b = comm_of(comm2);
	if (!comm_ok(a) || !comm_ok(b))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!result)
		return API_FAIL(a, MPI_ERR_ARG);
	*result = compare(a, b);
	return API_LEAVE(a, MPI_SUCCESS);
}
API_ALIAS(Comm_compare);

int PMPI_Comm_set_name(MPI_Comm comm, const char *name)
{
	API_ENTER("MPI_Comm_set_name");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!name)
		return API_FAIL(c, MPI_ERR_ARG);
	size_t n = strnlen(name, sizeof(c->name) - 1);
	memcpy(c->name, name, n);
	c->name[n] = 0;
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Comm_set_name);

int PMPI_Comm_get_name(MPI_Comm comm, char *name, int *resultlen)
{
	API_ENTER("MPI_Comm_get_name");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!name || !resultlen)
		return API_FAIL(c, MPI_ERR_ARG);
	*resultlen = (int)strlen(c->name);
	memcpy(name, c->name, (size_t)*resultlen + 1);
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Comm_get_name);

/* The hints that communicators know; MPI lets others be ignored. They promise things of which the
 * library makes no use yet. */
static const char *const hints[] = {"mpi_assert_no_any_source", "mpi_assert_allow_overtaking"};

int comm_hints_set(struct comm *c, const struct info *from)
{
	struct info *known = info_copy(c->info);
	int rc = known ? MPI_SUCCESS : MPI_ERR_NO_MEM;
	for (size_t i = 0; i < ARRAY_LEN(hints) && !rc; i++) {
		const char *value = info_get(from, hints[i]);
		if (value)
			rc = info_set(known, hints[i], strcmp(value, "true") ? "false" : "true");
	}
	if (rc) {
		info_release(known);
		return rc;
	}
	info_release(c->info);
	c->info = known;
	return MPI_SUCCESS;
}

static struct info *hints_get(const struct comm *c)
{
	struct info *all = info_new();
	for (size_t i = 0; i < ARRAY_LEN(hints) && all; i++) {
		const char *value = c->info ? info_get(c->info, hints[i]) : NULL;
		if (info_set(all, hints[i], value ? value : "false")) {
			info_release(all);
			return NULL;
		}
	}
	return all;
}

int PMPI_Comm_set_info(MPI_Comm comm, MPI_Info info)
{
	API_ENTER("MPI_Comm_set_info");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	struct info *i = info_handle_open(info);
	if (!i)
		return API_FAIL(c, MPI_ERR_INFO);
	return API_LEAVE(c, comm_hints_set(c, i));
}
API_ALIAS(Comm_set_info);

int PMPI_Comm_get_info(MPI_Comm comm, MPI_Info *info)
{
	API_ENTER("MPI_Comm_get_info");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!info)
		return API_FAIL(c, MPI_ERR_INFO);
	struct info *copy = hints_get(c);
	if (!copy)
		return API_FAIL(c, MPI_ERR_NO_MEM);
	*info = info_handle(copy);
	return API_LEAVE(c, MPI_SUCCESS);
}
API_ALIAS(Comm_get_info);
