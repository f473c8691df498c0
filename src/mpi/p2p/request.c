/* SPDX-License-Identifier: BSD-3-Clause */
/* One request: how it is retired; start, free, cancel, status; MPI_REQUEST_NULL. */
#include "mpi/p2p/replay.h"

#include "base/yield.h"
#include "deliver/redundant.h"
#include "mpi/task/intask.h"

struct ompi_predefined_request_t {
	struct request request;
	char reserved[256 - sizeof(struct request)];
};

/* Waiting for it ends at once, with the empty status. */
struct ompi_predefined_request_t ompi_request_null = {
    .request = {
	.obj = OBJECT_STATIC(OBJECT_REQUEST, OBJECT_NULL),
	.complete = REQUEST_COMPLETE,
	.status = {.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG},
    }};

MPI_Status ompi_status_empty = {
    .MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG, .MPI_ERROR = MPI_SUCCESS};

static void note_failure(struct failure *f, const struct request *r)
{
	if (f->error)
		return;
	f->error = r->status.MPI_ERROR;
	f->comm = r->comm;
	if (f->comm)
		comm_retain(f->comm);
}

/* The integer that Fortran knew it by is free again; then the request itself is. */
static void request_drop(struct request *r)
{
	if (UNLIKELY(r->obj.f_index != -1) && !(r->obj.flags & OBJECT_PREDEFINED))
		object_forget_fortran(&r->obj);
	if (UNLIKELY(r->persistent && r->note != NULL))
		intask_persistent_leave(r);
	match_request_free(r);
}

/* An execution after an error may ask for it again. */
static void request_drop_late(void *r)
{
	request_drop(r);
}

int request_retire(MPI_Request *handle, MPI_Status *out, struct failure *f)
{
	struct request *r = request_of(*handle);
	int error;

	if (UNLIKELY(r->query))
		r->query(r);
	if (UNLIKELY(r->note != NULL))
		r->note_give(r);
	if (out)
		*out = r->status;
	error = r->status.MPI_ERROR;
	if (UNLIKELY(error))
		note_failure(f, r);
	if (r->persistent) {
		r->active = false;
		if (UNLIKELY(r->note != NULL || tasklog_now != NULL))
			intask_persistent_over(r);
		return error;
	}
	*handle = MPI_REQUEST_NULL;
	if (UNLIKELY(tasklog_now != NULL) && intask_keep(r))
		return error;
	if (UNLIKELY(r->kind == REQUEST_GENERALIZED)) {
		int rc = grequest_free(r);
		if (rc && !f->error)
			f->error = rc;
		return error ? error : rc;
	}
	request_drop(r);
	return error;
}

int request_leave(struct failure *f, const char *function)
{
	if (LIKELY(!f->error))
		return api_leave(NULL, MPI_SUCCESS, function);
	int rc = api_leave(f->comm, f->error, function);
	if (f->comm) {
		guard_enter();
		comm_release(f->comm);
		guard_leave();
	}
	return rc;
}

int p2p_leave_empty(const char *function)
{
	int rc = api_leave(NULL, MPI_SUCCESS, function);

	if (link_self()->segment->oversubscribed || guard_multiple)
		yield_fairly();
	return rc;
}

static int start_one(struct request *r)
{
	if (!request_ok(r) || !r->persistent || r->active)
		return MPI_ERR_REQUEST;
	if (UNLIKELY(tasklog_now != NULL))
		return intask_start(r);
	return r->start ? r->start(r) : match_start(r);
}

int PMPI_Start(MPI_Request *request)
{
	API_ENTER("MPI_Start");
	if (!request)
		return API_FAIL(NULL, MPI_ERR_REQUEST);
	return API_LEAVE(NULL, start_one(request_of(*request)));
}
API_ALIAS(Start);

int PMPI_Startall(int count, MPI_Request requests[])
{
	API_ENTER("MPI_Startall");
	if (count < 0)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (!requests && count > 0)
		return API_FAIL(NULL, MPI_ERR_REQUEST);
	for (int i = 0; i < count; i++) {
		const struct request *r = request_of(requests[i]);
		if (!request_ok(r) || !r->persistent)
			return API_FAIL(NULL, MPI_ERR_REQUEST);
	}
	int rc = MPI_SUCCESS;
	for (int i = 0; i < count && !rc; i++)
		rc = start_one(request_of(requests[i]));
	return API_LEAVE(NULL, rc);
}
API_ALIAS(Startall);

int PMPI_Request_free(MPI_Request *request)
{
	API_ENTER("MPI_Request_free");
	struct request *r = request ? request_of(*request) : NULL;
	if (!request_ok(r) || request_is_null(r))
		return API_FAIL(NULL, MPI_ERR_REQUEST);
	*request = MPI_REQUEST_NULL;
	if (UNLIKELY(tasklog_now != NULL) && r->persistent) {
		intask_free(r, request_drop_late);
		return API_LEAVE(NULL, MPI_SUCCESS);
	}
	if (UNLIKELY(tasklog_now != NULL))
		intask_request_free(r);
	if (r->kind == REQUEST_GENERALIZED)
		return API_LEAVE(NULL, grequest_free(r));
	request_drop(r);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Request_free);

int PMPI_Cancel(MPI_Request *request)
{
	API_ENTER("MPI_Cancel");
	struct request *r = request ? request_of(*request) : NULL;
	int rc = MPI_SUCCESS;
	if (!request_ok(r) || request_is_null(r))
		return API_FAIL(NULL, MPI_ERR_REQUEST);
	if (r->kind == REQUEST_GENERALIZED)
		rc = grequest_cancel(r);
	else if (r->cancel)
		rc = r->cancel(r);
	else if (r->kind == REQUEST_COLL)
		rc = MPI_ERR_REQUEST; /* MPI-3.1 5.12: collectives can't be cancelled */
	else if (!request_idle(r))
		rc = match_cancel(intask_persistent_operation(r));
	return API_LEAVE(NULL, rc);
}
API_ALIAS(Cancel);

int PMPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	API_ENTER("MPI_Request_get_status");
	struct request *r = request_of(request);
	if (!flag)
		return API_FAIL(NULL, MPI_ERR_ARG);
	if (!request_ok(r))
		return API_FAIL(NULL, MPI_ERR_REQUEST);
	if (request_idle(r)) {
		*flag = 1;
		status_copy_single(status, &ompi_status_empty);
		return API_LEAVE(NULL, MPI_SUCCESS);
	}
	if (UNLIKELY(redundant_on)) {
		*flag = replay_one(r);
	} else {
		if (!r->complete)
			match_progress();
		*flag = r->complete;
	}
	if (!*flag)
		return p2p_leave_empty(api_name);
	if (r->query)
		r->query(r);
	if (UNLIKELY(r->note != NULL))
		r->note_give(r);
	status_copy_single(status, &r->status);
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Request_get_status);

int PMPI_Test_cancelled(const MPI_Status *status, int *flag)
{
	API_ENTER("MPI_Test_cancelled");
	if (!status || !flag)
		return API_FAIL(NULL, MPI_ERR_ARG);
	*flag = status->_cancelled;
	return API_LEAVE(NULL, MPI_SUCCESS);
}
API_ALIAS(Test_cancelled);
