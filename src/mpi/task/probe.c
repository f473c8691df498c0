/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes inside tasks. What a probe has found is an event; one that found nothing is none. */
#include "mpi/task/intask.h"

enum { MESSAGE_IN_TASK = 1 << 16 }; /* in a message's flags */

int intask_probe(int src, int tag, struct comm *c, int *flag, MPI_Status *status)
{
	struct tasklog_channel *ch = intask_channel(TASKLOG_PROBE, c, src, tag);
	struct intask_note *n;
	int rc;

	if (ch && tasklog_replays(ch)) {
		n = intask_replay(ch);
		if (n)
			status_copy_single(status, &n->status);
		if (flag)
			*flag = 1;
		return MPI_SUCCESS;
	}
	rc = flag ? match_iprobe(src, tag, c, flag, status) : match_probe(src, tag, c, status);
	if (!ch || rc || (flag && !*flag))
		return rc;
	n = intask_note_make(ch, 0);
	if (n)
		n->status = *status;
	return MPI_SUCCESS;
}

/* ---- matched messages: received at once, given to the program when it asks ---- */

static struct intask_note *note_of_message(const struct match_message *m)
{
	return CONTAINER(m, struct intask_note, message);
}

static int message_give(struct intask_note *n, struct match_message **m, MPI_Status *status)
{
	if (!n->held) {
		n->held = true;
		tasklog_ref_add(&n->record);
	}
	*status = n->status;
	*m = (struct match_message *)&n->message;
	return MPI_SUCCESS;
}

static int mprobe_keep(struct intask_note *n, struct match_message **m, MPI_Status *status)
{
	int rc = match_mrecv(n->payload, n->capacity, datatype_of(MPI_PACKED), *m, &n->status);

	if (rc) {
		intask_lose("in a task with a receive that MPI refused");
		return rc;
	}
	object_init(&n->message, OBJECT_MESSAGE);
	n->message.flags |= MESSAGE_IN_TASK;
	n->complete = n->receives = true;
	return message_give(n, m, status);
}

int intask_mprobe(int src, int tag, struct comm *c, int *flag, struct match_message **m,
		  MPI_Status *status)
{
	struct tasklog_channel *ch = intask_channel(TASKLOG_MATCHED, c, src, tag);
	struct intask_note *n;
	int rc;

	if (ch && tasklog_replays(ch)) {
		n = intask_replay(ch);
		if (flag)
			*flag = 1;
		return n ? message_give(n, m, status) : MPI_ERR_INTERN;
	}
	rc = flag ? match_improbe(src, tag, c, flag, m, status)
		  : match_mprobe(src, tag, c, m, status);
	if (!ch || rc || (flag && !*flag))
		return rc;
	n = intask_note_make(ch, status->_ucount);
	if (!n)
		return MPI_SUCCESS;
	n->capacity = status->_ucount;
	return mprobe_keep(n, m, status);
}

bool intask_is_message(const struct match_message *m)
{
	const struct object *o = (const struct object *)m;

	if (o->flags & MESSAGE_IN_TASK)
		return true;
	if (tasklog_now)
		intask_lose("in a task that has received a message which another one had matched");
	return false;
}

/* The program has no handle of the message any more. */
static int message_take(struct match_message *m, void *buf, size_t count, struct datatype *t,
			MPI_Status *status)
{
	struct intask_note *n = note_of_message(m);
	size_t fits = count * t->size;
	int rc = n->capacity > fits ? MPI_ERR_TRUNCATE : MPI_SUCCESS;

	datatype_unpack(t, buf, count, 0, n->payload, n->capacity < fits ? n->capacity : fits);
	*status = n->status;
	status->MPI_ERROR = rc;
	if (rc)
		status->_ucount = fits;
	if (tasklog_now && n->record.log != tasklog_now)
		intask_lose("in a task that has received a message which another one had matched");
	n->held = false;
	tasklog_ref_drop(&n->record);
	return rc;
}

int intask_mrecv(void *buf, size_t count, struct datatype *t, struct match_message *m,
		 MPI_Status *status)
{
	MPI_Status st;
	int rc = message_take(m, buf, count, t, &st);

	status_copy_single(status, &st);
	return rc;
}

int intask_imrecv(void *buf, size_t count, struct datatype *t, struct match_message *m,
		  struct request **req)
{
	struct request *r = match_request_new(REQUEST_RECV, NULL);

	if (!r)
		return MPI_ERR_NO_MEM;
	message_take(m, buf, count, t, &r->status);
	r->complete = 1;
	*req = r;
	return MPI_SUCCESS;
}
