// SPDX-License-Identifier: BSD-3-Clause
/* Receiving: records as channels hand them up; receives as the program posts them. */
#include "match/internal.h"

#include <string.h>
#include "channel/copy.h"

/* ---- a message meets its receive ---- */

static inline void payload_take(struct match_request *r, const void *payload, size_t n)
{
	if (LIKELY(r->run != NULL)) {
		if (n <= COPY_SMALL_MAX)
			copy_small(r->run, payload, n);
		else
			memcpy(r->run, payload, n);
	} else if (n) {
		datatype_unpack(r->base.type, r->base.buf, r->base.count, 0, payload, n);
	}
}

static inline __attribute__((always_inline)) void receive_match_inline(struct match_request *r,
								       uint32_t from,
								       const struct envelope *e,
								       const void *payload)
{
	MPI_Status *s = &r->base.status;
	s->MPI_SOURCE = e->source;
	s->MPI_TAG = e->tag;
	if (UNLIKELY(e->kind == RECORD_RTS)) {
		struct rts rts;
		memcpy(&rts, payload, sizeof(rts));
		rendezvous_receive(r, from, e, &rts);
		return;
	}
	size_t n = e->length <= r->length ? e->length : r->length;
	payload_take(r, payload, n);
	s->_ucount = n;
	if (UNLIKELY(e->kind == RECORD_SYNC))
		control_send(from, RECORD_ACK, e->id, 0, NULL, 0);
	request_finish(r, LIKELY(n == e->length) ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
}

void receive_match(struct match_request *r, uint32_t from, const struct envelope *e,
		   const void *payload)
{
	receive_match_inline(r, from, e, payload);
}

/* ---- what arrives ---- */

/* Nobody will fetch what this message has announced. */
static void announced_drop(uint32_t from, const struct envelope *e, const void *payload)
{
	struct rts rts;
	if (e->kind != RECORD_RTS)
		return;
	memcpy(&rts, payload, sizeof(rts));
	rendezvous_unwanted(from, rts.address);
}

/* Takes a message back if nobody has matched it yet. */
static void cancel_arrive(uint32_t from, const struct envelope *e, const void *payload)
{
	uint32_t context;
	memcpy(&context, payload, sizeof(context));
	struct match_message *m = flow_of(context, from)->first;
	while (m && (m->envelope.id != e->id || m->envelope.kind == RECORD_EAGER))
		m = m->next;
	if (m) {
		announced_drop(from, &m->envelope, m->payload);
		unexpected_remove(m);
		heap_free(m);
	}
	control_send(from, RECORD_CANCELLED, e->id, m != NULL, NULL, 0);
}

static void control_arrive(uint32_t from, const struct envelope *e, const void *payload)
{
	struct cts cts;
	switch (e->kind) {
	case RECORD_ACK:
	case RECORD_FIN:
	case RECORD_CANCELLED:
		send_arrive(from, e);
		return;
	case RECORD_CTS:
		memcpy(&cts, payload, sizeof(cts));
		rendezvous_cts(from, e, &cts);
		return;
	case RECORD_DATA:
		rendezvous_data(e, payload);
		return;
	case RECORD_CANCEL:
		cancel_arrive(from, e, payload);
		return;
	case RECORD_PRESSURE:
		match.peer[from].eager_max = e->tag ? 0 : *match.peer[from].channel->eager_max;
		return;
	case CHANNEL_LATE:
		channel_late_arrive(from, e, payload);
		return;
	default:
		log_warn("internal error: rank %u sent a record of kind %u to rank %u; please "
			 "report this",
			 from, e->kind, match.rank);
		link_abort(70);
	}
}

void match_arrive(uint32_t from, const struct envelope *e, const void *payload)
{
	if (UNLIKELY(e->kind > RECORD_RTS)) {
		control_arrive(from, e, payload);
		return;
	}
	struct flow *f = flow_of(e->context, from);
	if (UNLIKELY(!deliver_accept(&f->ledger, from, e, payload))) {
		announced_drop(from, e, payload);
		return;
	}
	struct match_request *r =
	    LIKELY(!redundant_on) ? posted_take(f, e->tag) : decide_posted_take(f, e);
	if (LIKELY(r != NULL))
		receive_match_inline(r, from, e, payload);
	else
		unexpected_add(f, e, payload);
}

/* ---- the interface ---- */

static const MPI_Status status_proc_null = {.MPI_SOURCE = MPI_PROC_NULL, .MPI_TAG = MPI_ANY_TAG};

static inline void receive_fill(struct match_request *r, void *buf, size_t count,
				struct datatype *t, int src, int tag, struct comm *c, uint32_t mode)
{
	r->base.kind = REQUEST_RECV;
	r->base.buf = buf;
	r->base.count = count;
	r->base.type = t;
	r->base.comm = c;
	r->base.peer = src;
	r->base.tag = tag;
	r->base.mode = mode;
	r->context = context_of(c, mode);
	r->world = LIKELY(src >= 0) ? (uint32_t)c->world[src] : MATCH_ANY;
	r->run = datatype_run(t, buf, count, &r->length);
}

static void receive_proc_null(struct match_request *r)
{
	r->base.status = status_proc_null;
	request_finish(r, MPI_SUCCESS);
}

/* Matches with what is there already, or posts. */
static inline void receive_start(struct match_request *r)
{
	if (UNLIKELY(redundant_on)) {
		decide_receive(r);
		return;
	}
	struct match_message *m = unexpected_find(r->context, r->world, r->base.tag);
	if (LIKELY(!m)) {
		posted_add(r);
		return;
	}
	unexpected_remove(m);
	receive_match(r, m->from, &m->envelope, m->payload);
	heap_free(m);
}

static void status_give(MPI_Status *to, const MPI_Status *from)
{
	if (to == MPI_STATUS_IGNORE)
		return;
	to->MPI_SOURCE = from->MPI_SOURCE;
	to->MPI_TAG = from->MPI_TAG;
	to->_cancelled = from->_cancelled;
	to->_ucount = from->_ucount;
}

/* What a receive on the stack must have set; the rest is set where it is used. */
static inline void receive_on_stack(struct match_request *r)
{
	r->base.query = NULL;
	r->base.complete = 0;
	r->base.cancelled = false;
	r->base.persistent = false;
	r->base.status._cancelled = 0;
	r->orphan = false;
	r->cancelling = false;
	r->pieces = NULL;
	r->share = -1;
}

int match_recv(void *buf, size_t count, struct datatype *t, int src, int tag, struct comm *c,
	       uint32_t mode, MPI_Status *status)
{
	struct match_request r;
	if (UNLIKELY(src == MPI_PROC_NULL)) {
		status_give(status, &status_proc_null);
		return MPI_SUCCESS;
	}
	receive_on_stack(&r);
	receive_fill(&r, buf, count, t, src, tag, c, mode);
	receive_start(&r);
	if (LIKELY(!r.base.complete))
		match_wait(&r.base);
	status_give(status, &r.base.status);
	return r.base.status.MPI_ERROR;
}

static int receive_request(void *buf, size_t count, struct datatype *t, int src, int tag,
			   struct comm *c, uint32_t mode, struct match_request **made)
{
	struct match_request *r = request_make();
	if (!r)
		return MPI_ERR_NO_MEM;
	receive_fill(r, buf, count, t, src, tag, c, mode);
	datatype_retain(t);
	comm_retain(c);
	*made = r;
	return MPI_SUCCESS;
}

int match_irecv(void *buf, size_t count, struct datatype *t, int src, int tag, struct comm *c,
		uint32_t mode, struct request **req)
{
	struct match_request *r;
	int rc = receive_request(buf, count, t, src, tag, c, mode, &r);
	if (rc)
		return rc;
	*req = &r->base;
	if (UNLIKELY(src == MPI_PROC_NULL))
		receive_proc_null(r);
	else
		receive_start(r);
	return MPI_SUCCESS;
}

int match_recv_init(void *buf, size_t count, struct datatype *t, int src, int tag, struct comm *c,
		    uint32_t mode, struct request **req)
{
	struct match_request *r;
	int rc = receive_request(buf, count, t, src, tag, c, mode, &r);
	if (rc)
		return rc;
	r->base.persistent = true;
	r->base.active = false;
	*req = &r->base;
	return MPI_SUCCESS;
}

int receive_restart(struct match_request *r)
{
	memset(&r->base.status, 0, sizeof(r->base.status));
	if (r->base.peer == MPI_PROC_NULL)
		receive_proc_null(r);
	else
		receive_start(r);
	return MPI_SUCCESS;
}

/* ---- matched messages ---- */

static bool message_is_null(const struct match_message *m)
{
	return m == (struct match_message *)MPI_MESSAGE_NO_PROC;
}

static void message_receive(struct match_request *r, struct match_message *m)
{
	if (message_is_null(m)) {
		receive_proc_null(r);
		return;
	}
	m->obj.kind = OBJECT_FREED;
	receive_match(r, m->from, &m->envelope, m->payload);
	heap_free(m);
}

static void matched_fill(struct match_request *r, void *buf, size_t count, struct datatype *t)
{
	r->base.kind = REQUEST_RECV;
	r->base.buf = buf;
	r->base.count = count;
	r->base.type = t;
	r->base.comm = NULL;
	r->state = STATE_IDLE;
	r->run = datatype_run(t, buf, count, &r->length);
}

int match_imrecv(void *buf, size_t count, struct datatype *t, struct match_message *m,
		 struct request **req)
{
	struct match_request *r = request_make();
	if (!r)
		return MPI_ERR_NO_MEM;
	matched_fill(r, buf, count, t);
	datatype_retain(t);
	*req = &r->base;
	message_receive(r, m);
	return MPI_SUCCESS;
}

int match_mrecv(void *buf, size_t count, struct datatype *t, struct match_message *m,
		MPI_Status *status)
{
	struct match_request r;
	receive_on_stack(&r);
	matched_fill(&r, buf, count, t);
	message_receive(&r, m);
	if (!r.base.complete)
		match_wait(&r.base);
	status_give(status, &r.base.status);
	return r.base.status.MPI_ERROR;
}
