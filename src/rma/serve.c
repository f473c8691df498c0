/* SPDX-License-Identifier: BSD-3-Clause */
/* Far operations, the target's side: carries out what has come, in each round of progress. What one
 * origin sends is done in its order: while a large message of its is being received, its later
 * ones wait. */
#include <string.h>
#include "object/layout_wire.h"
#include "rma/internal.h"

/* An operation whose data come in a message of their own. */
struct rma_arriving {
	struct rma_arriving *next;
	int source;
	struct rma_am am;
	struct request *data;
	struct datatype *type; /* the target's memory */
	char *memory;	       /* UPDATE: the data */
};

/* A lock that isn't free. */
struct rma_waiting {
	struct rma_waiting *next;
	int source, type;
};

static struct datatype *serve_byte(void)
{
	return (struct datatype *)MPI_BYTE;
}

/* ---- the memory that a message names ---- */

/* A datatype of one element for it; NULL: no memory, or no layout. */
static struct datatype *serve_type(const struct rma_am *am, const int64_t *numbers)
{
	struct layout_ref layout;
	const struct basic_shape *shape = &basic_shapes[am->basic < BASIC_COUNT ? am->basic : 1];
	if (!layout_wire_read(numbers, am->numbers, &layout))
		return NULL;
	struct signature_ref elements = {.count = am->bytes / (shape->size ? shape->size : 1),
					 .size = am->bytes,
					 .basic = am->basic};
	ptrdiff_t low = 0, high = 0;
	if (layout.size)
		layout_range(layout, &low, &high);
	struct datatype *t = datatype_make(layout, elements);
	if (t)
		datatype_set_bounds(t, low, high);
	return t;
}

static bool serve_inside(const struct win *w, const struct rma_am *am, const struct datatype *t)
{
	return !am->bytes ||
	       rma_inside(w, am->address + (uint64_t)t->true_lb, 0, (size_t)t->true_extent);
}

/* ---- doing it ---- */

static void serve_fault(struct win *w, int source, int error)
{
	if (error && !w->peer[source].its_fault)
		w->peer[source].its_fault = error;
}

/* Sends what is in memory of the heap (taken over), or what t describes (likewise). */
static int serve_reply(struct win *w, int source, const struct rma_am *am, void *memory, void *from,
		       size_t count, struct datatype *t)
{
	struct rma_pending *p = rma_pending_add(w, -1);
	if (!p)
		return MPI_ERR_NO_MEM;
	p->memory = memory;
	p->type = t == serve_byte() ? NULL : t;
	return match_isend(from, count, t, source, (int)am->reply_tag, w->comm, MATCH_STANDARD,
			   &p->send);
}

static int serve_update(struct win *w, int source, const struct rma_am *am, struct datatype *t,
			const char *data, const char *compare)
{
	char *old = am->reply_tag ? heap_alloc(am->bytes ? am->bytes : 1) : NULL;
	if (am->reply_tag && !old)
		return MPI_ERR_NO_MEM;
	struct rma_update u = {
	    .op = rma_op_at(am->op),
	    .basic = (basic_t)am->basic,
	    .swap = am->swap,
	    .compare = compare,
	    .bytes = am->bytes,
	    .origin = {(void *)(uintptr_t)data, am->bytes, serve_byte()},
	    .result = {old, am->bytes, old ? serve_byte() : NULL},
	};
	rma_update_direct(&u, &w->part, w->words, (char *)(uintptr_t)am->address, 1, t);
	return old ? serve_reply(w, source, am, old, old, am->bytes, serve_byte()) : MPI_SUCCESS;
}

/* Nothing can be given back: the origin finds that it is too short. */
static int serve_refuse(struct win *w, int source, const struct rma_am *am, int error)
{
	serve_fault(w, source, error);
	return am->reply_tag ? serve_reply(w, source, am, NULL, NULL, 0, serve_byte())
			     : MPI_SUCCESS;
}

static int serve_later(struct win *w, int source, const struct rma_am *am, struct datatype *t,
		       bool inside)
{
	struct rma_arriving *a = heap_calloc(1, sizeof(*a));
	if (!a)
		return MPI_ERR_NO_MEM;
	a->source = source;
	a->am = *am;
	a->type = t;
	bool in_place = am->kind == RMA_AM_PUT && inside;
	if (!in_place && !(a->memory = heap_alloc(am->bytes)))
		return MPI_ERR_NO_MEM;
	if (!inside)
		a->am.error = MPI_ERR_RMA_RANGE;
	w->peer[source].busy = true;
	a->next = w->arriving;
	w->arriving = a;
	return match_irecv(in_place ? (void *)(uintptr_t)am->address : a->memory,
			   in_place ? 1 : am->bytes, in_place ? t : serve_byte(), source,
			   (int)am->data_tag, w->comm, MATCH_STANDARD, &a->data);
}

/* t is used up. */
static int serve_operation(struct win *w, int source, const struct rma_am *am, struct datatype *t,
			   char *data)
{
	bool inside = serve_inside(w, am, t);
	int rc = MPI_SUCCESS;
	if (am->data_tag)
		return serve_later(w, source, am, t, inside);
	if (!inside) {
		rc = serve_refuse(w, source, am, MPI_ERR_RMA_RANGE);
	} else if (am->kind == RMA_AM_PUT) {
		datatype_unpack(t, (void *)(uintptr_t)am->address, 1, 0, data, am->bytes);
	} else if (am->kind == RMA_AM_GET) {
		return am->reply_tag
			   ? serve_reply(w, source, am, NULL, (void *)(uintptr_t)am->address, 1, t)
			   : MPI_SUCCESS;
	} else {
		rc = serve_update(w, source, am, t, data, data + am->bytes);
	}
	datatype_release(t);
	return rc;
}

static void arriving_done(struct win *w, struct rma_arriving *a)
{
	serve_fault(w, a->source, a->data->status.MPI_ERROR);
	match_request_free(a->data);
	int rc = MPI_SUCCESS;
	if (a->am.error)
		rc = serve_refuse(w, a->source, &a->am, a->am.error);
	else if (a->am.kind == RMA_AM_UPDATE)
		rc = serve_update(w, a->source, &a->am, a->type, a->memory, NULL);
	serve_fault(w, a->source, rc);
	w->peer[a->source].busy = false;
	datatype_release(a->type);
	heap_free(a->memory);
	heap_free(a);
}

/* ---- locks and epochs ---- */

static void serve_grant(struct win *w, int source)
{
	struct rma_am am = {.kind = RMA_AM_GRANT};
	serve_fault(w, source, rma_tell(w, source, &am));
}

static void serve_lock(struct win *w, int source, int type)
{
	struct rma_waiting **end = &w->waiting, *q;
	if (!w->waiting && rma_lock_try(w->words, type)) {
		serve_grant(w, source);
		return;
	}
	q = heap_calloc(1, sizeof(*q));
	if (!q) {
		log_warn("rank %u has no memory to remember who waits for a lock", rma.rank);
		link_abort(70);
	}
	q->source = source;
	q->type = type;
	while (*end)
		end = &(*end)->next;
	*end = q;
}

static int waiting_look(struct win *w)
{
	int moved = 0;
	while (w->waiting && rma_lock_try(w->words, w->waiting->type)) {
		struct rma_waiting *q = w->waiting;
		w->waiting = q->next;
		serve_grant(w, q->source);
		heap_free(q);
		moved++;
	}
	return moved;
}

static void serve_confirm(struct win *w, int source)
{
	struct rma_peer *p = &w->peer[source];
	struct rma_am am = {.kind = RMA_AM_CONFIRM, .error = p->its_fault};
	p->its_fault = MPI_SUCCESS;
	rma_tell(w, source, &am);
}

static void serve_control(struct win *w, int source, const struct rma_am *am)
{
	struct rma_peer *p = &w->peer[source];
	switch (am->kind) {
	case RMA_AM_LOCK:
		serve_lock(w, source, am->type);
		return;
	case RMA_AM_UNLOCK:
		rma_lock_give(w, w->words, am->type);
		serve_confirm(w, source);
		return;
	case RMA_AM_FLUSH:
		serve_confirm(w, source);
		return;
	case RMA_AM_POST:
		p->posts++;
		return;
	case RMA_AM_COMPLETE:
		w->completes++;
		return;
	case RMA_AM_CONFIRM:
		p->confirmed++;
		if (am->error)
			p->fault = am->error;
		return;
	case RMA_AM_GRANT:
		p->granted = true;
		return;
	default:
		return;
	}
}

/* ---- what has come ---- */

static void serve_message(struct win *w, int source, char *memory, size_t bytes)
{
	struct rma_am am;
	memcpy(&am, memory, sizeof(am));
	if (am.kind > RMA_AM_UPDATE) {
		serve_control(w, source, &am);
		return;
	}
	const int64_t *numbers = (const int64_t *)(const void *)(memory + sizeof(am));
	struct datatype *t =
	    am.numbers <= (bytes - sizeof(am)) / sizeof(int64_t) ? serve_type(&am, numbers) : NULL;
	int rc = t ? serve_operation(w, source, &am, t,
				     memory + sizeof(am) + am.numbers * sizeof(int64_t))
		   : serve_refuse(w, source, &am, MPI_ERR_NO_MEM);
	serve_fault(w, source, rc);
}

static bool source_busy(void *arg, int source)
{
	const struct win *w = arg;
	return w->peer[source].busy;
}

/* A message that is larger than what goes at once is received as it comes (its layout is long). */
struct rma_slow {
	struct rma_slow *next;
	struct win *w;
	int source;
	struct request *r;
	char *memory;
	size_t bytes;
};
static struct rma_slow *slow;

static int slow_look(void)
{
	int moved = 0;
	for (struct rma_slow **at = &slow; *at;) {
		struct rma_slow *s = *at;
		if (!s->r->complete) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		match_request_free(s->r);
		s->w->peer[s->source].busy = false;
		serve_message(s->w, s->source, s->memory, s->bytes);
		heap_free(s->memory);
		heap_free(s);
		moved++;
	}
	return moved;
}

static bool slow_add(struct win *w, int source, struct request *r, char *memory, size_t bytes)
{
	struct rma_slow *s = heap_alloc(sizeof(*s));
	if (!s)
		return false;
	*s = (struct rma_slow){slow, w, source, r, memory, bytes};
	slow = s;
	w->peer[source].busy = true;
	return true;
}

static int window_messages(struct win *w)
{
	struct match_message *m;
	size_t bytes;
	int source, moved = 0;
	while (match_take(w->comm, RMA_TAG_AM, source_busy, w, &m, &source, &bytes)) {
		struct request *r = NULL;
		char *memory = heap_alloc(bytes + 8);
		if (!memory || match_imrecv(memory, bytes, serve_byte(), m, &r)) {
			log_warn("rank %u has no memory for a one-sided operation of %lu bytes; "
				 "give the job more memory",
				 rma.rank, (unsigned long)bytes);
			link_abort(70);
		}
		moved++;
		if (!r->complete && slow_add(w, source, r, memory, bytes))
			continue;
		match_request_free(r);
		serve_message(w, source, memory, bytes);
		heap_free(memory);
	}
	return moved;
}

static int window_arrivals(struct win *w)
{
	int moved = 0;
	for (struct rma_arriving **at = &w->arriving; *at;) {
		struct rma_arriving *a = *at;
		if (!a->data->complete) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		arriving_done(w, a);
		moved++;
	}
	return moved;
}

int rma_serve(void)
{
	int moved = slow ? slow_look() : 0;
	for (struct win *w = rma.windows; w; w = w->next) {
		if (w->arriving)
			moved += window_arrivals(w);
		moved += window_messages(w);
		if (w->waiting)
			moved += waiting_look(w);
		if (w->pending)
			moved += rma_pending_sweep(w);
	}
	return moved;
}
