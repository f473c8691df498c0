// SPDX-License-Identifier: BSD-3-Clause
/* Requests: memory, start, cancel, free. */
#include "match/internal.h"

#include <string.h>

/* Freed ones, linked by next: a request is made and freed for most nonblocking messages. */
static struct match_request *spare;

/* What a nonblocking send that left at once returns. It can be shared, since nothing of it ever
 * changes; freeing it does nothing. */
struct match_request match_done = {
    .base =
	{
	    .obj = OBJECT_STATIC(OBJECT_REQUEST, 0),
	    .kind = REQUEST_NONE,
	    .active = true,
	    .complete = REQUEST_COMPLETE,
	    .status = {.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG},
	},
    .share = -1,
};

struct match_request *request_make(void)
{
	struct match_request *r = spare;
	if (LIKELY(r != NULL))
		spare = r->next;
	else if (!(r = heap_alloc(sizeof(*r))))
		return NULL;
	memset(r, 0, sizeof(*r));
	object_init(&r->base.obj, OBJECT_REQUEST);
	r->base.active = true;
	r->share = -1;
	return r;
}

void request_release(struct match_request *r)
{
	struct request *b = &r->base;
	if (UNLIKELY(b->note != NULL))
		b->note_drop(b);
	if (b->destroy)
		b->destroy(b);
	if (r->block)
		buffer_block_free(r->block);
	heap_free(r->pieces);
	if (b->type)
		datatype_release(b->type);
	if (b->comm)
		comm_release(b->comm);
	b->obj.kind = OBJECT_FREED;
	r->next = spare;
	spare = r;
}

void match_requests_free(void)
{
	while (spare) {
		struct match_request *r = spare;
		spare = r->next;
		heap_free(r);
	}
}

struct request *match_request_new(request_kind_t kind, struct comm *c)
{
	struct match_request *r = kind == REQUEST_NONE ? &match_done : request_make();
	if (!r || r == &match_done)
		return r ? &r->base : NULL;
	r->base.kind = kind;
	r->base.comm = c;
	if (c)
		comm_retain(c);
	return &r->base;
}

void match_request_free(struct request *b)
{
	struct match_request *r = (struct match_request *)b;
	if (b->obj.flags & OBJECT_PREDEFINED)
		return;
	if (b->complete || (b->persistent && !b->active)) {
		request_release(r);
		return;
	}
	r->orphan = true;
	if (b->kind == REQUEST_SEND || b->kind == REQUEST_RECV)
		return; /* request_finish sees to it */
	match.work += !match.orphans;
	r->next = match.orphans;
	match.orphans = r;
}

void orphans_sweep(void)
{
	struct match_request **at = &match.orphans;
	while (*at) {
		struct match_request *r = *at;
		if (!r->base.complete) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		request_release(r);
	}
	match.work -= !match.orphans;
}

int match_start(struct request *b)
{
	struct match_request *r = (struct match_request *)b;
	b->active = true;
	b->complete = 0;
	b->cancelled = false;
	r->finished = false;
	return b->kind == REQUEST_SEND ? send_restart(r) : receive_restart(r);
}

/* ---- cancelling ---- */

static int cancel_send(struct match_request *r)
{
	struct peer *p = &match.peer[r->world];
	switch (r->state) {
	case STATE_QUEUED: /* nothing has left, not even a number */
		list_remove(&p->queue, r);
		r->base.cancelled = true;
		r->base.status._cancelled = 1;
		request_finish(r, MPI_SUCCESS);
		return MPI_SUCCESS;
	case STATE_WAITING:
	case STATE_HELPING:
		if (r->cancelling)
			return MPI_SUCCESS;
		r->cancelling = true;
		control_send(r->world, RECORD_CANCEL, (uintptr_t)r, r->base.tag, &r->context,
			     sizeof(r->context));
		return MPI_SUCCESS;
	default: /* all of it is on its way */
		return MPI_SUCCESS;
	}
}

int match_cancel(struct request *b)
{
	struct match_request *r = (struct match_request *)b;
	if (UNLIKELY(redundant_on) && (b->kind == REQUEST_SEND || b->kind == REQUEST_RECV))
		return decide_cancel(r);
	if (b->complete)
		return MPI_SUCCESS;
	if (b->kind != REQUEST_SEND && b->kind != REQUEST_RECV)
		return b->cancel ? b->cancel(b) : MPI_ERR_REQUEST;
	if (b->kind == REQUEST_SEND)
		return cancel_send(r);
	if (r->state == STATE_POSTED) {
		posted_remove(r);
		b->cancelled = true;
		b->status._cancelled = 1;
		b->status._ucount = 0;
		request_finish(r, MPI_SUCCESS);
	}
	return MPI_SUCCESS;
}
