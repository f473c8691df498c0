/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent requests inside tasks. An operation that a task starts is a nonblocking one of the
 * task's log, as if MPI_Isend, MPI_Irecv, … had begun it; the program's request only shows how that
 * stands, by a struct shown. So the next start, or the next execution, finds the request free:
 *
 *   request      shows    MPI_Start in a task         completed in a task
 *   inactive     nothing  shows a new operation       -
 *   active       nothing  (erroneous)                 what came is kept; inactive
 *   active       its own  (erroneous)                 the data are given; inactive
 *
 * Before the first MPI call of another execution each request that the task has touched is what it
 * was before: inactive, or active and complete, and what came is given again. */
#include "coll/near.h"
#include "mpi/task/intask.h"

struct shown {
	struct shown *next;	  /* in `under_way` */
	struct request *r;	  /* the program's */
	struct request *inner;	  /* the operation; NULL: what an earlier execution has completed */
	struct intask_note *kept; /* if inner is NULL */
	bool listed;
	/* what r had */
	void *note;
	void (*give)(struct request *r);
	void (*drop)(struct request *r);
};

static struct shown *under_way;

static void shown_give(struct request *r);
static void shown_drop(struct request *r);

static struct shown *shown_of(const struct request *r)
{
	return r->note && r->note_drop == shown_drop ? r->note : NULL;
}

static int shown_progress(void)
{
	int moved = 0;

	for (struct shown **at = &under_way; *at;) {
		struct shown *s = *at;

		if (!s->inner->complete) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		s->listed = false;
		request_complete(s->r, s->inner->status.MPI_ERROR);
		moved++;
	}
	return moved;
}

static struct shown *shown_make(struct request *r)
{
	struct shown *s = heap_calloc(1, sizeof(*s));

	if (!s) {
		intask_lose("in a task for whose messages there was no memory");
		return NULL;
	}
	*s = (struct shown){.r = r, .note = r->note, .give = r->note_give, .drop = r->note_drop};
	r->note = s;
	r->note_give = shown_give;
	r->note_drop = shown_drop;
	return s;
}

/* r shows nothing any more. */
static void shown_detach(struct shown *s)
{
	struct shown **at = &under_way;

	while (s->listed && *at != s)
		at = &(*at)->next;
	if (s->listed)
		*at = s->next;
	s->r->note = s->note;
	s->r->note_give = s->give;
	s->r->note_drop = s->drop;
	heap_free(s);
}

/* Its note, if a log of tasks has begun it. */
static struct intask_note *inner_note(const struct request *inner)
{
	return inner->note && !intask_landing_is(inner) ? inner->note : NULL;
}

static void shown_give(struct request *r)
{
	struct shown *s = r->note;
	struct intask_note *n = s->kept;

	if (!s->inner) {
		r->status = n->status;
		if (n->capacity && r->kind == REQUEST_COLL)
			intask_coll_unpack(coll_persistent_args(r), n->payload);
		else if (n->capacity)
			datatype_unpack(r->type, r->buf, r->count, 0, n->payload, n->capacity);
		return;
	}
	if (s->inner->note)
		s->inner->note_give(s->inner);
	r->status = s->inner->status;
}

static void shown_end(struct shown *s)
{
	struct request *inner = s->inner;

	shown_detach(s);
	if (inner)
		match_request_free(inner);
}

static void shown_drop(struct request *r)
{
	void (*drop)(struct request * r);

	shown_end(r->note);
	drop = r->note_drop;
	if (r->note)
		drop(r);
}

void intask_persistent_leave(struct request *r)
{
	struct shown *s = shown_of(r);

	if (!s)
		return;
	shown_end(s);
	r->active = false;
}

/* ---- what a request was before the task ---- */

static bool before_is_noted(const struct request *r)
{
	const struct tasklog_channel *ch = intask_channel_of(TASKLOG_PERSISTENT, r);

	return ch && ch->first;
}

/* Notes it, unless it has been noted. */
static struct intask_note *before_note(struct request *r, size_t bytes)
{
	struct tasklog_channel *ch = intask_channel_of(TASKLOG_PERSISTENT, r);
	struct intask_note *n;

	if (!ch || ch->first)
		return (struct intask_note *)(ch ? ch->first : NULL);
	n = intask_note_make(ch, bytes);
	if (!n)
		return NULL;
	n->object = r;
	n->next = tasklog_now->persistent;
	tasklog_now->persistent = n;
	return n;
}

static void before_set_back(const struct intask_note *n)
{
	struct request *r = n->object;
	struct shown *s = shown_of(r);

	if (s) {
		struct intask_note *began = s->inner ? inner_note(s->inner) : NULL;

		/* what goes on is found again by the start that has begun it */
		if (began && began->request == s->inner)
			shown_detach(s);
		else
			shown_end(s);
	}
	r->active = n->complete;
	r->complete = n->complete;
	if (!n->complete || !(s = shown_make(r)))
		return;
	s->kept = (struct intask_note *)(uintptr_t)n;
	r->status = n->status;
}

void intask_persistent_set_back(void)
{
	tasklog_now->set_back = false;
	for (const struct intask_note *n = tasklog_now->persistent; n; n = n->next)
		before_set_back(n);
}

/* r was active when the task began, or another task has started it; it is complete now. */
static void foreign_note(struct request *r)
{
	const struct coll_args *a = r->start ? coll_persistent_args(r) : NULL;
	struct intask_note *n;
	size_t bytes = 0;

	if (r->start && (!a || a->comm->remote)) {
		intask_lose(a ? "in a task with a collective operation between two groups"
			      : "in a task that has completed a persistent request of partitions "
				"or of neighbours");
		return;
	}
	if (a) {
		bytes = intask_coll_bytes(a);
	} else if (r->kind == REQUEST_RECV) {
		bytes = r->count * r->type->size;
		bytes = r->status._ucount < bytes ? r->status._ucount : bytes;
	}
	n = before_note(r, bytes);
	if (!n)
		return;
	n->complete = true;
	n->status = r->status;
	n->capacity = bytes;
	if (a)
		intask_coll_pack(a, n->payload);
	else if (bytes)
		datatype_pack(r->type, r->buf, r->count, 0, n->payload, bytes);
}

void intask_persistent_over(struct request *r)
{
	struct shown *s = shown_of(r);

	/* the first start by the task would have noted r: somebody else has started it */
	if (tasklog_now && !before_is_noted(r))
		foreign_note(r);
	if (s)
		shown_end(s);
}

const struct request *intask_persistent_inner(const struct request *r, const struct intask_note **n)
{
	const struct shown *s = shown_of(r);

	*n = s && !s->inner ? s->kept : NULL;
	return s ? s->inner : NULL;
}

struct request *intask_persistent_operation(struct request *r)
{
	struct shown *s = shown_of(r);

	return s && s->inner ? s->inner : r;
}

/* ---- starts ---- */

static int start_show(struct request *r, struct request *inner)
{
	static bool hooked;
	struct shown *s = shown_make(r);

	if (!s)
		return MPI_ERR_NO_MEM;
	if (!hooked)
		match_progress_hook(shown_progress);
	hooked = true;
	s->inner = inner;
	r->active = true;
	r->cancelled = false;
	r->complete = 0;
	s->listed = true;
	s->next = under_way;
	under_way = s;
	shown_progress();
	return MPI_SUCCESS;
}

int intask_start(struct request *r)
{
	const struct coll_args *a = r->start ? coll_persistent_args(r) : NULL;
	struct tasklog_channel *ch = intask_channel_of(TASKLOG_START, r);
	struct request *inner = NULL;
	int rc;

	if (r->start && !a)
		intask_lose("in a task that has started a request of partitions or of neighbours");
	if ((r->start && !a) || !ch || !before_note(r, 0))
		return r->start ? r->start(r) : match_start(r);
	if (a)
		rc = intask_coll_start_on(ch, a, &inner);
	else if (r->kind == REQUEST_SEND)
		rc = intask_isend_on(ch, r->buf, r->count, r->type, r->peer, r->tag, r->comm,
				     r->mode, &inner);
	else
		rc = intask_irecv_on(ch, r->buf, r->count, r->type, r->peer, r->tag, r->comm,
				     &inner);
	return rc ? rc : start_show(r, inner);
}

/* ---- requests that a task makes ---- */

/* The request of an earlier execution, for the buffer of this one; NULL: there is none. */
static struct request *init_again(struct tasklog_channel *ch, void *buf, size_t count,
				  struct datatype *t)
{
	struct intask_note *n;
	struct request *r;

	if (!intask_again(ch, &n) || !n)
		return NULL;
	r = n->object;
	if (r->note && intask_landing_is(r)) /* of the buffer before; the caller notes this one */
		r->note_drop(r);
	datatype_retain(t);
	datatype_release(r->type);
	r->type = t;
	r->buf = buf;
	r->count = count;
	return r;
}

static int init_keep(struct tasklog_channel *ch, int rc, struct request *r)
{
	struct intask_note *n = ch && !rc ? intask_note_make(ch, 0) : NULL;

	if (n)
		n->object = r;
	return rc;
}

int intask_send_init(const void *buf, size_t count, struct datatype *t, int dst, int tag,
		     struct comm *c, uint32_t mode, struct request **req)
{
	struct tasklog_channel *ch = intask_channel(TASKLOG_INIT, c, dst, tag);
	int rc;

	*req = init_again(ch, (void *)(uintptr_t)buf, count, t);
	if (*req)
		return MPI_SUCCESS;
	rc = match_send_init(buf, count, t, dst, tag, c, mode, req);
	return init_keep(ch, rc, *req);
}

int intask_recv_init(void *buf, size_t count, struct datatype *t, int src, int tag, struct comm *c,
		     struct request **req)
{
	struct tasklog_channel *ch = intask_channel(TASKLOG_INIT, c, src, tag);
	int rc;

	*req = init_again(ch, buf, count, t);
	if (*req)
		return MPI_SUCCESS;
	rc = match_recv_init(buf, count, t, src, tag, c, 0, req);
	return init_keep(ch, rc, *req);
}
