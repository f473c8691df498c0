/* SPDX-License-Identifier: BSD-3-Clause */
/* Process sets: which there are, what is known of one, the group of one. */
#include <string.h>
#include <strings.h>
#include "base/fmt.h"
#include "mpi/session/session.h"

enum { PSET_WORLD, PSET_SELF, PSETS };
static const char *const names[PSETS] = {"mpi://WORLD", "mpi://SELF"};

/* The case of the letters does not matter (MPI-4.1 11.3.2). */
static int pset_find(const char *name)
{
	for (int k = 0; name && k < PSETS; k++)
		if (!strcasecmp(name, names[k]))
			return k;
	return -1;
}

static bool info_null_or_ok(MPI_Info info)
{
	return info == MPI_INFO_NULL || info_ok(info_of(info));
}

int PMPI_Session_get_num_psets(MPI_Session session, MPI_Info info, int *npset_names)
{
	API_ENTER("MPI_Session_get_num_psets");
	struct mpi_session *s = session_of(session);
	if (!session_ok(s))
		return API_FAIL(NULL, MPI_ERR_SESSION);
	if (!info_null_or_ok(info))
		return SESSION_LEAVE(s, MPI_ERR_INFO);
	if (!npset_names)
		return SESSION_LEAVE(s, MPI_ERR_ARG);
	*npset_names = PSETS;
	return SESSION_LEAVE(s, MPI_SUCCESS);
}
API_ALIAS(Session_get_num_psets);

/* pset_len: in, the room in pset_name with its NUL; out, what the whole name takes. */
int PMPI_Session_get_nth_pset(MPI_Session session, MPI_Info info, int n, int *pset_len,
			      char *pset_name)
{
	API_ENTER("MPI_Session_get_nth_pset");
	struct mpi_session *s = session_of(session);
	if (!session_ok(s))
		return API_FAIL(NULL, MPI_ERR_SESSION);
	if (!info_null_or_ok(info))
		return SESSION_LEAVE(s, MPI_ERR_INFO);
	if (n < 0 || n >= PSETS || !pset_len || *pset_len < 0 || (*pset_len && !pset_name))
		return SESSION_LEAVE(s, MPI_ERR_ARG);
	size_t whole = strlen(names[n]);
	if (*pset_len) {
		size_t fits = whole < (size_t)*pset_len ? whole : (size_t)*pset_len - 1;
		memcpy(pset_name, names[n], fits);
		pset_name[fits] = '\0';
	}
	*pset_len = (int)whole + 1;
	return SESSION_LEAVE(s, MPI_SUCCESS);
}
API_ALIAS(Session_get_nth_pset);

int PMPI_Session_get_pset_info(MPI_Session session, const char *pset_name, MPI_Info *info)
{
	API_ENTER("MPI_Session_get_pset_info");
	struct mpi_session *s = session_of(session);
	int k = pset_find(pset_name);
	char size[16];
	if (!session_ok(s))
		return API_FAIL(NULL, MPI_ERR_SESSION);
	if (k < 0 || !info)
		return SESSION_LEAVE(s, MPI_ERR_ARG);
	fmt_print(size, sizeof(size), "%d", k == PSET_SELF ? 1 : COMM_WORLD->size);
	struct info *i = info_new();
	int rc = i ? info_set(i, "mpi_size", size) : MPI_ERR_NO_MEM;
	if (rc)
		info_release(i);
	else
		*info = info_handle(i);
	return SESSION_LEAVE(s, rc);
}
API_ALIAS(Session_get_pset_info);

static int pset_group(struct mpi_session *s, int k, struct group **out)
{
	int n = 1, *world = NULL;
	if (k == PSET_WORLD)
		world = world_members(&n);
	else if ((world = heap_alloc(sizeof(*world))))
		*world = (int)link_self()->rank;
	*out = world ? group_create(world, n) : NULL;
	if (!*out)
		return MPI_ERR_NO_MEM;
	(*out)->session = session_retain(s);
	return MPI_SUCCESS;
}

int PMPI_Group_from_session_pset(MPI_Session session, const char *pset_name, MPI_Group *newgroup)
{
	API_ENTER("MPI_Group_from_session_pset");
	struct mpi_session *s = session_of(session);
	struct group *g;
	if (!session_ok(s))
		return API_FAIL(NULL, MPI_ERR_SESSION);
	if (!newgroup)
		return SESSION_LEAVE(s, MPI_ERR_ARG);
	*newgroup = MPI_GROUP_NULL;
	int k = pset_find(pset_name);
	int rc = k < 0 ? MPI_ERR_ARG : pset_group(s, k, &g);
	if (!rc)
		*newgroup = group_handle(g);
	return SESSION_LEAVE(s, rc);
}
API_ALIAS(Group_from_session_pset);
