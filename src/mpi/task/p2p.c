/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives inside tasks. */
#include "mpi/task/intask.h"

static uint64_t clock_from(size_t bytes)
{
	return bytes >= 4096 ? clock_ns() : 0;
}

static void clock_until(uint64_t from)
{
	if (from)
		atomic_fetch_add_explicit(&tasklog_totals.nanoseconds, clock_ns() - from,
					  memory_order_relaxed);
}

/* ---- sends ---- */

int intask_send(const void *buf, size_t count, struct datatype *t, int dst, int tag, struct comm *c,
		uint32_t mode)
{
	struct tasklog_channel *ch;
	int rc;

	if (dst == MPI_PROC_NULL || !(ch = intask_channel(TASKLOG_SEND, c, dst, tag)))
		return match_send(buf, count, t, dst, tag, c, mode);
	if (tasklog_replays(ch)) {
		tasklog_replay(ch);
		return MPI_SUCCESS;
	}
	rc = match_send(buf, count, t, dst, tag, c, mode);
	if (!rc)
		intask_note_make(ch, 0);
	return rc;
}

static int isend_begin(struct tasklog_channel *ch, const void *buf, size_t count,
		       struct datatype *t, int dst, int tag, struct comm *c, uint32_t mode,
		       struct request **req)
{
	size_t bytes = count * t->size;
	uint64_t from = clock_from(bytes);
	struct intask_note *n = intask_note_make(ch, bytes);
	int rc;

	if (!n)
		return match_isend(buf, count, t, dst, tag, c, mode, req);
	datatype_pack(t, buf, count, 0, n->payload, bytes);
	clock_until(from);
	rc = match_isend(n->payload, bytes, datatype_of(MPI_PACKED), dst, tag, c, mode, req);
	if (rc) {
		intask_lose("in a task with a send that MPI refused");
		return rc;
	}
	intask_begin(n, *req);
	if (n->complete)
		tasklog_shrink(&n->record, 0);
	return MPI_SUCCESS;
}

int intask_isend_on(struct tasklog_channel *ch, const void *buf, size_t count, struct datatype *t,
		    int dst, int tag, struct comm *c, uint32_t mode, struct request **req)
{
	if (dst == MPI_PROC_NULL || !ch)
		return match_isend(buf, count, t, dst, tag, c, mode, req);
	if (!tasklog_replays(ch))
		return isend_begin(ch, buf, count, t, dst, tag, c, mode, req);
	return intask_request(intask_replay(ch), c, req);
}

int intask_isend(const void *buf, size_t count, struct datatype *t, int dst, int tag,
		 struct comm *c, uint32_t mode, struct request **req)
{
	return intask_isend_on(intask_channel(TASKLOG_SEND, c, dst, tag), buf, count, t, dst, tag,
			       c, mode, req);
}

/* ---- receives ---- */

/* What the program gives for this execution. */
static void irecv_attach(struct intask_note *n, void *buf, size_t count, struct datatype *t)
{
	bool held = atomic_load(&n->record.refs) > 0;

	if (held)
		datatype_retain(t);
	if (held && n->type)
		datatype_release(n->type);
	n->buf = buf;
	n->count = count;
	n->type = t;
	n->receives = true;
}

static int recv_again(struct intask_note *n, void *buf, size_t count, struct datatype *t,
		      MPI_Status *status)
{
	datatype_unpack(t, buf, count, 0, n->payload, n->status._ucount);
	status_copy_single(status, &n->status);
	return n->status.MPI_ERROR;
}

static int recv_now(struct tasklog_channel *ch, void *buf, size_t count, struct datatype *t,
		    int src, int tag, struct comm *c, MPI_Status *status)
{
	MPI_Status st = ompi_status_empty;
	size_t bytes = count * t->size;
	struct intask_note *n;
	uint64_t from;
	int rc = match_recv(buf, count, t, src, tag, c, 0, &st);

	status_copy_single(status, &st);
	bytes = st._ucount < bytes ? st._ucount : bytes;
	from = clock_from(bytes);
	n = intask_note_make(ch, bytes);
	if (!n)
		return rc;
	datatype_pack(t, buf, count, 0, n->payload, bytes);
	n->status = st;
	n->status._ucount = bytes;
	n->status.MPI_ERROR = rc;
	n->complete = n->receives = true;
	clock_until(from);
	return rc;
}

int intask_recv(void *buf, size_t count, struct datatype *t, int src, int tag, struct comm *c,
		MPI_Status *status)
{
	struct tasklog_channel *ch;
	struct intask_note *n;
	struct request *r;
	int rc;

	if (src == MPI_PROC_NULL || !(ch = intask_channel(TASKLOG_RECEIVE, c, src, tag)))
		return match_recv(buf, count, t, src, tag, c, 0, status);
	if (!tasklog_replays(ch))
		return recv_now(ch, buf, count, t, src, tag, c, status);
	n = intask_replay(ch);
	if (n && n->complete)
		return recv_again(n, buf, count, t, status);
	/* the earlier execution did not block here: the task is not deterministic */
	if (!n)
		return MPI_ERR_INTERN;
	irecv_attach(n, buf, count, t);
	rc = intask_request(n, c, &r);
	if (rc)
		return rc;
	match_wait(r);
	struct failure f = {0};
	MPI_Request h = request_handle(r);
	rc = request_retire(&h, NULL, &f);
	if (f.comm)
		comm_release(f.comm);
	status_copy_single(status, &n->status);
	return rc;
}

int intask_irecv_on(struct tasklog_channel *ch, void *buf, size_t count, struct datatype *t,
		    int src, int tag, struct comm *c, struct request **req)
{
	struct intask_note *n;
	int rc;

	if (src == MPI_PROC_NULL || !ch)
		return match_irecv(buf, count, t, src, tag, c, 0, req);
	if (tasklog_replays(ch)) {
		n = intask_replay(ch);
		if (!n)
			return MPI_ERR_INTERN;
		irecv_attach(n, buf, count, t);
		return intask_request(n, c, req);
	}
	n = intask_note_make(ch, count * t->size);
	if (!n)
		return match_irecv(buf, count, t, src, tag, c, 0, req);
	n->capacity = count * t->size;
	rc = match_irecv(n->payload, n->capacity, datatype_of(MPI_PACKED), src, tag, c, 0, req);
	if (rc) {
		intask_lose("in a task with a receive that MPI refused");
		return rc;
	}
	irecv_attach(n, buf, count, t);
	intask_begin(n, *req);
	return MPI_SUCCESS;
}

int intask_irecv(void *buf, size_t count, struct datatype *t, int src, int tag, struct comm *c,
		 struct request **req)
{
	return intask_irecv_on(intask_channel(TASKLOG_RECEIVE, c, src, tag), buf, count, t, src,
			       tag, c, req);
}
