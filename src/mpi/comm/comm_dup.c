/* SPDX-License-Identifier: BSD-3-Clause */
/* Duplicates, blocking and not, and the end of communicators. */
#include "mpi/comm/comm.h"
#include "mpi/mpi4.h"
#include "mpi/task/intask.h"

/* An unpublished copy of c: groups, topology, hints. info NULL: those of c. */
static struct comm *copy_start(struct comm *c, const struct info *info)
{
	struct comm *copy = comm_create(c, c->group, c->remote);
	if (!copy)
		return NULL;
	const struct info *hints = info ? info : c->info;
	if (hints && comm_hints_set(copy, hints)) {
		comm_release(copy);
		return NULL;
	}
	if (c->topo) {
		c->topo->refs++;
		comm_set_topology(copy, c->topo);
	}
	return copy;
}

/* Attributes that were copied before something failed go by their delete callbacks. */
static void give_up(struct comm *copy)
{
	attr_delete_all(ATTR_COMM, copy, &copy->attrs);
	comm_release(copy);
}

static int publish(struct comm *copy, const uint32_t *contexts)
{
	return comm_is_inter(copy) ? comm_publish_inter(copy, contexts)
				   : comm_publish(copy, contexts[0]);
}

/* All members agree on its contexts, and it is known. */
static int agree(struct comm *c, struct comm *copy)
{
	uint32_t contexts[2];
	int rc = comm_is_inter(c) ? inter_agree(c, contexts) : context_agree(c, contexts);
	return rc ? rc : publish(copy, contexts);
}

int comm_duplicate(struct comm *c, struct comm **copy)
{
	*copy = copy_start(c, NULL);
	int rc = *copy ? agree(c, *copy) : MPI_ERR_NO_MEM;
	if (rc && *copy) {
		comm_release(*copy);
		*copy = NULL;
	}
	return rc;
}

static int duplicate(struct comm *c, const struct info *info, MPI_Comm *newcomm)
{
	if (UNLIKELY(tasklog_now != NULL) && intask_comm_again(c, newcomm))
		return MPI_SUCCESS;
	struct comm *copy = copy_start(c, info);
	*newcomm = MPI_COMM_NULL;
	if (!copy)
		return MPI_ERR_NO_MEM;
	int rc = agree(c, copy);
	if (!rc)
		rc = attr_copy_all(ATTR_COMM, c, &c->attrs, copy, &copy->attrs);
	if (rc)
		give_up(copy);
	else
		*newcomm = comm_handle(copy);
	if (UNLIKELY(tasklog_now != NULL) && !rc)
		intask_comm_made(c, *newcomm);
	return rc;
}

int PMPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
	API_ENTER("MPI_Comm_dup");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!newcomm)
		return API_FAIL(c, MPI_ERR_ARG);
	return API_LEAVE(c, duplicate(c, NULL, newcomm));
}
API_ALIAS(Comm_dup);

int PMPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
	API_ENTER("MPI_Comm_dup_with_info");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!newcomm)
		return API_FAIL(c, MPI_ERR_ARG);
	struct info *none = NULL, *i = info_handle_open(info);
	if (!i && info != MPI_INFO_NULL)
		return API_FAIL(c, MPI_ERR_INFO);
	if (!i)
		i = none = info_new();
	int rc = duplicate(c, i, newcomm);
	info_release(none);
	return API_LEAVE(c, rc);
}
API_ALIAS(Comm_dup_with_info);

/* ---- MPI_Comm_idup: the handle is there at once, its context when the request completes ---- */

/* The program holds the handle already when the agreement fails, and nothing can take it back:
 * each use of it is an error, and MPI_Comm_free buries it. */

struct idup {
	struct comm *copy;
	struct request *request;
};

static void idup_done(void *arg, int error, const uint32_t *contexts)
{
	struct idup *d = arg;
	if (!error)
		error = publish(d->copy, contexts);
	d->copy->obj.flags &= ~(uint32_t)OBJECT_UNBORN;
	if (error)
		d->copy->obj.flags |= OBJECT_FAILED;
	request_complete(d->request, error);
	heap_free(d);
}

static int idup_start(struct comm *c, struct comm *copy, struct request **request)
{
	struct idup *d = heap_alloc(sizeof(*d));
	*request = match_request_new(REQUEST_COLL, c);
	if (!d || !*request) {
		heap_free(d);
		return MPI_ERR_NO_MEM;
	}
	copy->obj.flags |= OBJECT_UNBORN;
	d->copy = copy;
	d->request = *request;
	if (!comm_is_inter(c))
		return context_agree_start(c, c->agreements++, idup_done, d);
	struct context_bridge bridge;
	inter_bridge(c, &bridge);
	bridge.key += c->local->agreements;
	return context_agree_start_bridge(&bridge, c->local->agreements++, idup_done, d);
}

/* Attributes are copied now: the program may change them before the request completes. */
static int idup(struct comm *c, const struct info *info, MPI_Comm *newcomm, MPI_Request *request)
{
	struct request *r;
	*newcomm = MPI_COMM_NULL;
	struct comm *copy = copy_start(c, info);
	if (!copy)
		return MPI_ERR_NO_MEM;
	int rc = attr_copy_all(ATTR_COMM, c, &c->attrs, copy, &copy->attrs);
	if (!rc)
		rc = idup_start(c, copy, &r);
	if (rc) {
		give_up(copy);
		return rc;
	}
	*newcomm = comm_handle(copy);
	*request = request_handle(r);
	return MPI_SUCCESS;
}

int PMPI_Comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request)
{
	API_ENTER("MPI_Comm_idup");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!newcomm || !request)
		return API_FAIL(c, MPI_ERR_ARG);
	return API_LEAVE(c, idup(c, NULL, newcomm, request));
}
API_ALIAS(Comm_idup);

int PMPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request)
{
	API_ENTER("MPI_Comm_idup_with_info");
	struct comm *c = comm_of(comm);
	const struct info *hints = info == MPI_INFO_NULL ? NULL : info_handle_open(info);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (!newcomm || !request)
		return API_FAIL(c, MPI_ERR_ARG);
	if (info != MPI_INFO_NULL && !hints)
		return API_FAIL(c, MPI_ERR_INFO);
	return API_LEAVE(c, idup(c, hints, newcomm, request));
}
API_ALIAS(Comm_idup_with_info);

/* ---- the end ---- */

/* The handle is gone at once, the communicator when no operation needs it any more. */
int comm_end(struct comm *c)
{
	int rc = attr_delete_all(ATTR_COMM, c, &c->attrs);
	if (rc)
		return rc;
	c->freed = true;
	if (!(c->obj.flags & OBJECT_FAILED))
		coll_comm_freed(c);
	if (c->local && c->local->context != COMM_CONTEXT_MAX)
		coll_comm_freed(c->local);
	comm_release(c);
	return MPI_SUCCESS;
}

/* A communicator that MPI_Comm_idup could not make is freed like others. */
static bool may_be_freed(const struct comm *c)
{
	bool failed = c && c->obj.kind == OBJECT_COMM && (c->obj.flags & OBJECT_FAILED);

	return failed || (comm_ok(c) && c != COMM_WORLD && c != COMM_SELF);
}

static void comm_end_late(void *c)
{
	comm_end(c);
}

int PMPI_Comm_free(MPI_Comm *comm)
{
	API_ENTER("MPI_Comm_free");
	struct comm *c = comm ? comm_of(*comm) : NULL;
	if (!may_be_freed(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	if (UNLIKELY(tasklog_now != NULL)) {
		intask_free(c, comm_end_late);
		*comm = MPI_COMM_NULL;
		return API_LEAVE(NULL, MPI_SUCCESS);
	}
	int rc = comm_end(c);
	if (rc)
		return API_FAIL(c, rc);
	*comm = MPI_COMM_NULL;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Comm_free);

int PMPI_Comm_disconnect(MPI_Comm *comm)
{
	API_ENTER("MPI_Comm_disconnect");
	struct comm *c = comm ? comm_of(*comm) : NULL;
	if (!comm_ok(c) || c == COMM_WORLD || c == COMM_SELF)
		return API_FAIL(NULL, MPI_ERR_COMM);
	/* what the others have sent before they came here is then here or on its way */
	int rc = coll_barrier(c->local ? c->local : c);
	if (!rc)
		rc = comm_end(c);
	if (rc)
		return API_FAIL(c, rc);
	*comm = MPI_COMM_NULL;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Comm_disconnect);
