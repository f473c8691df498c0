/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that tasks begin or complete. */
#include "mpi/task/intask.h"

struct intask_note *intask_note_make(struct tasklog_channel *ch, size_t payload)
{
	return (struct intask_note *)tasklog_record(tasklog_now, ch,
						    sizeof(struct intask_note) + payload, payload);
}

static struct intask_note *note_of(const struct request *r)
{
	const struct intask_note *n;

	if (r->persistent) {
		r = intask_persistent_inner(r, &n);
		if (!r)
			return (struct intask_note *)(uintptr_t)n;
	}
	return intask_landing_is(r) ? NULL : r->note;
}

/* Is it a note of the task that this thread executes? */
static bool note_is_ours(const struct intask_note *n)
{
	return n && tasklog_now && n->record.log == tasklog_now;
}

/* The operation is over; the note knows how. Once. */
static void note_complete(struct intask_note *n, const struct request *r)
{
	if (n->complete)
		return;
	n->complete = true;
	n->status = r->status;
	if (n->receives && n->status._ucount > n->capacity)
		n->status._ucount = n->capacity; /* truncated */
	if (!n->coll.comm)
		tasklog_shrink(&n->record, n->receives ? n->status._ucount : 0);
}

static void note_give(struct request *r)
{
	struct intask_note *n = r->note;

	note_complete(n, r);
	r->status = n->status;
	if (n->coll.comm)
		intask_coll_give(n);
	else if (n->receives)
		datatype_unpack(n->type, n->buf, n->count, 0, n->payload, n->status._ucount);
}

static void note_drop(struct request *r)
{
	struct intask_note *n = r->note;

	if (n->request == r) {
		note_complete(n, r);
		n->request = NULL;
	}
	if (n->type && atomic_load(&n->record.refs) == 1)
		datatype_release(n->type);
	tasklog_ref_drop(&n->record);
}

static void note_hold(struct intask_note *n, struct request *r)
{
	if (n->type && atomic_load(&n->record.refs) == 0)
		datatype_retain(n->type);
	tasklog_ref_add(&n->record);
	r->note = n;
	r->note_give = note_give;
	r->note_drop = note_drop;
}

void intask_begin(struct intask_note *n, struct request *r)
{
	if (r->kind == REQUEST_NONE) { /* it has left */
		n->complete = true;
		n->status = r->status;
		return;
	}
	n->request = r;
	note_hold(n, r);
}

int intask_request(struct intask_note *n, struct comm *c, struct request **req)
{
	struct request *r;

	if (!n)
		return MPI_ERR_INTERN;
	if (n->request && !n->freed) {
		*req = n->request;
		return MPI_SUCCESS;
	}
	if (n->freed || !(n->receives || n->coll.comm)) {
		*req = match_request_new(REQUEST_NONE, NULL);
		return MPI_SUCCESS;
	}
	r = match_request_new(n->coll.comm ? REQUEST_COLL : REQUEST_RECV, c);
	if (!r)
		return MPI_ERR_NO_MEM;
	r->status = n->status;
	r->complete = 1;
	note_hold(n, r);
	*req = r;
	return MPI_SUCCESS;
}

void intask_request_free(struct request *r)
{
	if (r->kind == REQUEST_NONE)
		return;
	if (note_is_ours(note_of(r)))
		note_of(r)->freed = true;
	else
		intask_lose("in a task that has freed a request of another one");
}

/* ---- requests of other tasks ---- */

static struct tasklog_channel *foreign_channel(const struct request *r)
{
	return intask_channel_of(TASKLOG_FOREIGN, r);
}

/* The request stays as it is, and its address its own, until the task has ended. */
static bool foreign_keep(struct tasklog_channel *ch, struct request *r)
{
	size_t fits =
	    note_of(r) || r->kind != REQUEST_RECV || !r->type ? 0 : r->count * r->type->size;
	size_t bytes = r->status._ucount < fits ? r->status._ucount : fits;
	struct intask_note *n = intask_note_make(ch, bytes);

	if (!n)
		return false;
	if (bytes)
		datatype_pack(r->type, r->buf, r->count, 0, n->payload, bytes);
	n->capacity = bytes;
	n->request = r;
	intask_owned_add(n);
	if (r->note && intask_landing_is(r)) /* what has arrived is in the record */
		r->note_drop(r);
	return true;
}

bool intask_keep(struct request *r)
{
	struct tasklog_channel *ch;
	struct intask_note *n;

	if (r->kind == REQUEST_NONE || note_is_ours(note_of(r)))
		return false;
	if (!note_of(r) && r->kind != REQUEST_SEND && r->kind != REQUEST_RECV) {
		intask_lose("in a task that has completed a collective operation of another one");
		return false;
	}
	ch = foreign_channel(r);
	if (!ch)
		return false;
	if (!tasklog_replays(ch))
		return foreign_keep(ch, r);
	n = intask_replay(ch);
	if (n && n->capacity)
		datatype_unpack(r->type, r->buf, r->count, 0, n->payload, n->capacity);
	return true;
}

/* ---- what is freed when the task has ended ---- */

/* Of tasks that have ended. Below MPI_THREAD_MULTIPLE the next MPI call of a task frees it: the
 * end of a task is no moment at which the program lets its thread into the library. */
static struct intask_note *_Atomic pending;

void intask_owned_add(struct intask_note *n)
{
	tasklog_ref_add(&n->record);
	n->next = tasklog_now->owned;
	tasklog_now->owned = n;
}

void intask_owned_leave(struct tasklog *log)
{
	struct intask_note *first = log->owned, *last = first;

	if (!first)
		return;
	while (last->next)
		last = last->next;
	log->owned = NULL;
	last->next = atomic_load(&pending);
	while (!atomic_compare_exchange_weak(&pending, &last->next, first))
		;
}

void intask_owned_free(void)
{
	struct intask_note *n = atomic_exchange(&pending, NULL), *next;

	for (; n; n = next) {
		next = n->next;
		if (n->request) {
			if (n->request->obj.f_index != -1)
				object_forget_fortran(&n->request->obj);
			match_request_free(n->request);
		}
		if (n->end)
			n->end(n->object);
		tasklog_ref_drop(&n->record);
	}
}

/* ---- which of several requests the program was given ---- */

static struct tasklog_channel *choices(void)
{
	return tasklog_channel(tasklog_now, TASKLOG_CHOICE, 0, 0, 0);
}

const int32_t *intask_chosen(int count, const MPI_Request *requests, int *n)
{
	struct tasklog_channel *ch = choices();
	const struct intask_note *made = NULL;
	const int32_t *list;

	if (ch && tasklog_replays(ch))
		made = (const struct intask_note *)tasklog_peek(ch);
	if (!made)
		return NULL;
	list = (const int32_t *)(const void *)made->payload;
	*n = (int)made->count;
	for (int i = 0; i < *n; i++) { /* of a task that is not deterministic anything may come */
		const struct request *r = list[i] < count ? request_of(requests[list[i]]) : NULL;

		if (!r || request_idle(r) || !r->complete)
			return NULL;
	}
	return list;
}

void intask_choose(const int *indices, int n)
{
	struct tasklog_channel *ch = choices();
	struct intask_note *made;

	if (!ch || n == 0)
		return;
	if (intask_again(ch, &made))
		return;
	made = intask_note_make(ch, (size_t)n * sizeof(int32_t));
	if (!made)
		return;
	made->count = (size_t)n;
	for (int i = 0; i < n; i++)
		((int32_t *)(void *)made->payload)[i] = indices[i];
}
