/* SPDX-License-Identifier: BSD-3-Clause */
/* Collective operations inside tasks. Their result at this process is what a record keeps. */
#include "mpi/task/intask.h"

/* ---- blocks of a call's result ---- */

static int results_count(const struct coll_args *a)
{
	bool root = a->comm->rank == a->root;

	switch (a->kind) {
	case COLL_BARRIER:
		return 0;
	case COLL_BCAST:
		return !root;
	case COLL_GATHER:
		return root ? a->comm->size : 0;
	case COLL_REDUCE:
		return root;
	case COLL_SCATTER:
		return a->rbuf != MPI_IN_PLACE;
	case COLL_ALLGATHER:
	case COLL_ALLTOALL:
		return a->comm->size;
	case COLL_EXSCAN:
		return a->comm->rank > 0;
	default:
		return 1;
	}
}

static struct coll_block result_block(const struct coll_args *a, int i)
{
	switch (a->kind) {
	case COLL_GATHER:
	case COLL_ALLGATHER:
	case COLL_ALLTOALL:
		return coll_recv_block(a, i);
	case COLL_REDUCE_SCATTER: {
		struct coll_block b = coll_recv_one(a);

		if (a->rcounts)
			b.count = coll_share(a, a->comm->rank);
		return b;
	}
	default:
		return coll_recv_one(a);
	}
}

size_t intask_coll_bytes(const struct coll_args *a)
{
	size_t bytes = 0;

	for (int i = 0, n = results_count(a); i < n; i++)
		bytes += coll_block_bytes(result_block(a, i));
	return bytes;
}

void intask_coll_pack(const struct coll_args *a, char *to)
{
	for (int i = 0, n = results_count(a); i < n; i++) {
		struct coll_block b = result_block(a, i);

		to += datatype_pack(b.type, b.buf, b.count, 0, to, coll_block_bytes(b));
	}
}

void intask_coll_unpack(const struct coll_args *a, const char *from)
{
	for (int i = 0, n = results_count(a); i < n; i++) {
		struct coll_block b = result_block(a, i);

		from += datatype_unpack(b.type, b.buf, b.count, 0, from, coll_block_bytes(b));
	}
}

/* ---- blocking ---- */

int intask_coll_run(const struct coll_args *a)
{
	struct tasklog_channel *ch;
	struct intask_note *n;
	int rc;

	if (a->comm->remote)
		intask_lose("in a task with a collective operation between two groups");
	if (a->comm->remote || !(ch = intask_channel(TASKLOG_COLLECTIVE, a->comm, 0, 0)))
		return coll_run(a);
	if (tasklog_replays(ch)) {
		n = intask_replay(ch);
		if (n)
			intask_coll_unpack(a, n->payload);
		return n ? n->status.MPI_ERROR : MPI_ERR_INTERN;
	}
	rc = coll_run(a);
	n = intask_note_make(ch, intask_coll_bytes(a));
	if (!n)
		return rc;
	intask_coll_pack(a, n->payload);
	n->status.MPI_ERROR = rc;
	n->complete = true;
	return rc;
}

/* ---- nonblocking: in buffers of the record's that are laid out as the program's ---- */

/* Memory that blocks of one side span. */
struct coll_span {
	char *from, *to;
};

static void span_add(struct coll_span *s, struct coll_block b)
{
	size_t bytes = coll_span(b.type, b.count);
	char *at = b.buf + coll_low(b.type, b.count);

	if (!bytes)
		return;
	if (!s->from || at < s->from)
		s->from = at;
	if (at + bytes > s->to)
		s->to = at + bytes;
}

size_t intask_coll_span(const struct coll_args *a, const char **from)
{
	struct coll_span s = {0};

	for (int i = 0, n = a->comm->remote ? 0 : results_count(a); i < n; i++)
		span_add(&s, result_block(a, i));
	*from = s.from;
	return (size_t)(s.to - s.from);
}

static size_t span_bytes(struct coll_span s)
{
	return ALIGN_UP((size_t)(s.to - s.from), CACHE_LINE);
}

/* Does this process give something, and where? Reductions: one block of rtype. */
static int inputs_count(const struct coll_args *a)
{
	bool root = a->comm->rank == a->root;

	switch (a->kind) {
	case COLL_BARRIER:
		return 0;
	case COLL_BCAST:
		return root;
	case COLL_SCATTER:
		return root ? a->comm->size : 0;
	case COLL_ALLTOALL:
		return coll_in_place(a) ? 0 : a->comm->size;
	case COLL_GATHER:
	case COLL_ALLGATHER:
		return !coll_in_place(a);
	default:
		return 1;
	}
}

static struct coll_block input_block(const struct coll_args *a, int i)
{
	size_t n = a->rcount;

	switch (a->kind) {
	case COLL_BCAST:
		return coll_recv_one(a);
	case COLL_SCATTER:
	case COLL_ALLTOALL:
		return coll_send_block(a, i);
	case COLL_GATHER:
	case COLL_ALLGATHER:
		return coll_send_one(a);
	case COLL_REDUCE_SCATTER:
		n *= (size_t)a->comm->size;
		if (a->rcounts) {
			n = 0;
			for (int k = 0; k < a->comm->size; k++)
				n += coll_share(a, k);
		}
		break;
	default:
		break;
	}
	return (struct coll_block){(char *)(uintptr_t)coll_input(a), n, a->rtype};
}

/* The input lies where the result goes: both are one buffer. */
static bool in_one(const struct coll_args *a)
{
	return a->kind == COLL_BCAST || coll_in_place(a);
}

static void copy_aside(struct coll_block b, ptrdiff_t shift)
{
	struct coll_block to = {b.buf + shift, b.count, b.type};

	coll_block_copy(to, b);
}

/* Args of the operation itself: the program's with both sides moved into memory of the log. */
static bool start_aside(struct tasklog_channel *ch, const struct coll_args *a,
			struct coll_args *own, struct intask_note **made)
{
	struct coll_span in = {0}, out = {0};
	int nin = inputs_count(a), nout = results_count(a);
	char *at;

	for (int i = 0; i < nin; i++)
		span_add(in_one(a) ? &out : &in, input_block(a, i));
	for (int i = 0; i < nout; i++)
		span_add(&out, result_block(a, i));
	if (coll_in_place(a) &&
	    (a->kind == COLL_ALLTOALL || a->kind == COLL_ALLGATHER || a->kind == COLL_GATHER))
		nin = -1; /* what is in the result's place already is the input */
	*made = intask_note_make(ch, span_bytes(in) + span_bytes(out));
	if (!*made)
		return false;
	at = (*made)->payload;
	*own = *a;
	if (in.from)
		own->sbuf = (const char *)a->sbuf + (at - in.from);
	if (out.from)
		own->rbuf = (char *)a->rbuf + (at + span_bytes(in) - out.from);
	for (int i = 0; i < nin; i++)
		copy_aside(input_block(a, i),
			   in_one(a) ? (char *)own->rbuf - (char *)a->rbuf : at - in.from);
	for (int i = 0; nin < 0 && i < nout; i++)
		copy_aside(result_block(a, i), (char *)own->rbuf - (char *)a->rbuf);
	return true;
}

int intask_coll_start(const struct coll_args *a, struct request **req)
{
	return intask_coll_start_on(intask_channel(TASKLOG_COLLECTIVE, a->comm, 0, 0), a, req);
}

int intask_coll_start_on(struct tasklog_channel *ch, const struct coll_args *a,
			 struct request **req)
{
	struct intask_note *n;
	struct coll_args own;
	int rc;

	if (a->comm->remote)
		intask_lose("in a task with a collective operation between two groups");
	if (a->comm->remote || !ch)
		return coll_start(a, req);
	if (tasklog_replays(ch)) {
		n = intask_replay(ch);
		if (n)
			n->coll = *a;
		return intask_request(n, a->comm, req);
	}
	if (!start_aside(ch, a, &own, &n))
		return coll_start(a, req);
	rc = coll_start(&own, req);
	if (rc) {
		intask_lose("in a task with a collective operation that MPI refused");
		return rc;
	}
	n->coll = *a;
	n->object = own.rbuf;
	intask_begin(n, *req);
	return MPI_SUCCESS;
}

void intask_coll_give(struct intask_note *n)
{
	struct coll_args from = n->coll;

	from.rbuf = n->object;
	for (int i = 0, k = results_count(&n->coll); i < k; i++)
		coll_block_copy(result_block(&n->coll, i), result_block(&from, i));
}
