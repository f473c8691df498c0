/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided calls inside tasks, and others that change something outside of the task only.
 *
 *   MPI_Put, MPI_Accumulate   leave once; data that wait for the target are copied
 *   MPI_Get and what fetches  are over when the call returns; a record keeps what came
 *   locks, fences, flushes …  happen once: the window stays as the first execution has left it
 *
 * All calls on one window are events of one channel, in the order in which the task makes them. */
#include "mpi/task/intask.h"
#include "rma/rma.h"

bool intask_call_again(const void *object, int *rc)
{
	struct intask_note *n;

	if (!intask_again(intask_channel_of(TASKLOG_CALL, object), &n))
		return false;
	*rc = n ? n->status.MPI_ERROR : MPI_ERR_INTERN;
	return true;
}

int intask_call_done(const void *object, int rc)
{
	struct tasklog_channel *ch = intask_channel_of(TASKLOG_CALL, object);
	struct intask_note *n = ch ? intask_note_make(ch, 0) : NULL;

	if (n) {
		n->status.MPI_ERROR = rc;
		n->complete = true;
	}
	return rc;
}

/* ---- operations ---- */

/* The origin's memory that the operation writes; NULL: none. */
static const struct rma_span *rma_result_of(const struct rma_call *c)
{
	if (c->kind == RMA_GET)
		return &c->origin;
	return c->result.type ? &c->result : NULL;
}

static size_t rma_span_bytes(const struct rma_span *s)
{
	return s->count * s->type->size;
}

static int rma_now(struct tasklog_channel *ch, struct rma_call *c)
{
	const struct rma_span *to = rma_result_of(c);
	struct intask_note *n;
	size_t bytes = 0;
	int rc;

	c->aside = true;
	rc = rma_run(c, NULL);
	if (!rc && to && c->target != MPI_PROC_NULL) {
		rc = rma_flush(c->win, c->target, true);
		bytes = rma_span_bytes(to);
	}
	n = intask_note_make(ch, bytes);
	if (!n)
		return rc;
	n->status.MPI_ERROR = rc;
	n->complete = true;
	n->capacity = bytes;
	if (bytes)
		datatype_pack(to->type, to->buf, to->count, 0, n->payload, bytes);
	return rc;
}

int intask_rma(struct rma_call *c, struct request **req)
{
	struct tasklog_channel *ch = intask_channel_of(TASKLOG_CALL, c->win);
	const struct rma_span *to = rma_result_of(c);
	struct intask_note *n;

	if (req) /* complete: data are copied, results are there */
		*req = match_request_new(REQUEST_NONE, NULL);
	if (!ch)
		return rma_run(c, req);
	if (!intask_again(ch, &n))
		return rma_now(ch, c);
	/* a task that is not deterministic may ask for something else */
	if (!n || (n->capacity && (!to || n->capacity != rma_span_bytes(to))))
		return MPI_ERR_INTERN;
	if (n->capacity)
		datatype_unpack(to->type, to->buf, to->count, 0, n->payload, n->capacity);
	return n->status.MPI_ERROR;
}

/* ---- results of calls outside of tasks, which arrive later ---- */

/* In the list of landing.c; the window itself is the key of its memory. */
static const void *results_key(const struct win *w)
{
	return (const char *)w + 1;
}

void intask_rma_begun(const struct rma_call *c)
{
	const struct rma_span *to = rma_result_of(c);

	if (to && rma_is_pending(c->win, c->target))
		intask_landing_memory(results_key(c->win),
				      (char *)to->buf + coll_low(to->type, to->count),
				      coll_span(to->type, to->count));
}

void intask_rma_over(const struct win *w)
{
	bool any = false;

	if (rma_is_pending(w, -1)) /* a flush of one member leaves results of others to come */
		return;
	while (intask_landing_forget(results_key(w)))
		any = true;
	if (any && tasklog_now)
		intask_lose("in a task that has waited for one-sided calls of others");
}
