// SPDX-License-Identifier: BSD-3-Clause
/* Sending: what can leave at once does so without a request; the rest queues per peer, in order,
 * and leaves from match_progress. */
#include "match/internal.h"

#include <string.h>

/* Copying costs less than a FIN up to here. */
enum { COPY_MAX = 8192 };

static struct envelope envelope_of(enum record_kind kind, uint32_t context, int source, int tag,
				   const struct flow *f, size_t length, uint64_t id)
{
	return (struct envelope){.kind = (uint8_t)kind,
				 .length = (uint32_t)length,
				 .context = context,
				 .source = source,
				 .tag = tag,
				 .number = deliver_next(&f->ledger),
				 .id = id};
}

/* ---- control records ---- */

static void peer_busy(struct peer *p)
{
	p->blocked = true;
	if (p->busy)
		return;
	p->busy = true;
	match.work += !match.busy;
	p->next_busy = match.busy;
	match.busy = p;
}

void control_send(uint32_t world, enum record_kind kind, uint64_t id, int tag, const void *payload,
		  size_t length)
{
	struct peer *p = &match.peer[world];
	struct envelope e = {
	    .kind = (uint8_t)kind, .length = (uint32_t)length, .tag = tag, .id = id};
	if (LIKELY(!p->first && !match.suspended) && p->channel->send(world, &e, payload))
		return;
	struct control *c = match_memory(sizeof(*c));
	c->next = NULL;
	c->envelope = e;
	if (length)
		memcpy(c->payload, payload, length);
	if (p->last)
		p->last->next = c;
	else
		p->first = c;
	p->last = c;
	peer_busy(p);
}

static int controls_flush(struct peer *p, uint32_t world)
{
	int sent = 0;
	while (p->first && p->channel->send(world, &p->first->envelope, p->first->payload)) {
		struct control *c = p->first;
		p->first = c->next;
		if (!p->first)
			p->last = NULL;
		heap_free(c);
		sent++;
	}
	return sent;
}

/* ---- one message ---- */

static bool pack_and_send(struct match_request *r, const struct envelope *e)
{
	struct peer *p = &match.peer[r->world];
	void *to = p->channel->reserve(r->world, e);
	if (!to)
		return false;
	datatype_pack(r->base.type, r->base.buf, r->base.count, 0, to, e->length);
	p->channel->commit(r->world, e);
	return true;
}

/* Is it better fetched than copied, although it is short enough? */
static inline bool announces(const struct peer *p, uint32_t world, size_t bytes)
{
	return UNLIKELY(bytes > COPY_MAX) && p->channel->busy && p->channel->busy(world);
}

/* Puts the first record of a message out. True: it has left, and r is complete or waits. */
static bool send_try(struct match_request *r)
{
	struct peer *p = &match.peer[r->world];
	struct flow *f = flow_of(r->context, r->world);
	bool eager =
	    r->length <= p->eager_max && !(r->patient && announces(p, r->world, r->length));
	bool sync = (r->base.mode & MATCH_MODE_MASK) == MATCH_SYNCHRONOUS;
	struct envelope e = envelope_of(eager ? sync ? RECORD_SYNC : RECORD_EAGER : RECORD_RTS,
					r->context, r->base.comm->rank, r->base.tag, f,
					eager ? r->length : sizeof(struct rts), (uintptr_t)r);
	enum request_state before = r->state;
	const void *run = r->run;
	bool left;

	/* to ourselves the answer comes within send, and may be the end of r */
	r->state = STATE_WAITING;
	match.unanswered += e.kind != RECORD_EAGER;
	if (!eager) {
		struct rts rts;
		rendezvous_describe(r, &rts);
		left = run && p->eager_max && p->channel->announce
			   ? p->channel->announce(r->world, &e, &rts, run, r->length)
			   : p->channel->send(r->world, &e, &rts);
	} else if (run || !r->length) {
		left = p->channel->send(r->world, &e, run);
	} else {
		left = pack_and_send(r, &e);
	}
	if (!left) {
		match.unanswered -= e.kind != RECORD_EAGER;
		r->state = (uint8_t)before;
		return false;
	}
	deliver_sent(&f->ledger, f->peer, &e, run);
	if (e.kind == RECORD_EAGER)
		request_finish(r, MPI_SUCCESS);
	return true;
}

/* A message of the program's has been, or will be sent. */
static inline void count_message(uint32_t mode, size_t bytes)
{
	if (LIKELY(!(mode & MATCH_COLL)))
		meter_message(match.meter, bytes);
}

void send_start(struct match_request *r)
{
	struct peer *p = &match.peer[r->world];
	count_message(r->base.mode, r->length);
	if (r->length >= MATCH_LONG_BYTES)
		match_call_long();
	if (!p->blocked && send_try(r))
		return;
	r->state = STATE_QUEUED;
	list_add(&p->queue, r);
	peer_busy(p);
}

/* The receiver has it all, or everything has left: complete, unless a cancel is under way. */
void send_finish(struct match_request *r)
{
	if (r->state == STATE_HELPING)
		work_remove(&match.helping, r);
	r->state = STATE_WAITING;
	match.unanswered--;
	if (UNLIKELY(r->cancelling))
		r->finished = true;
	else
		request_finish(r, MPI_SUCCESS);
}

void send_arrive(uint32_t from, const struct envelope *e)
{
	struct match_request *r = (struct match_request *)(uintptr_t)e->id;
	if (e->kind != RECORD_CANCELLED) {
		send_finish(r);
		return;
	}
	r->cancelling = false;
	if (e->tag) {
		if (r->state == STATE_HELPING)
			work_remove(&match.helping, r);
		match.unanswered--;
		r->base.cancelled = true;
		r->base.status._cancelled = 1;
		r->finished = true;
	}
	if (r->finished)
		request_finish(r, MPI_SUCCESS);
}

/* r was removed from l last, and nothing was added since. */
static void list_put_back(struct request_list *l, struct match_request *r)
{
	*(r->prev ? &r->prev->next : &l->first) = r;
	*(r->next ? &r->next->prev : &l->last) = r;
}

static bool queue_send(struct peer *p, struct match_request *r)
{
	/* out of its list first: it may be freed when it has left */
	list_remove(&p->queue, r);
	if (send_try(r))
		return true;
	list_put_back(&p->queue, r);
	return false;
}

/* With replicas a message may have to wait that another replica of this rank has not sent yet,
 * whereas one behind it, in another context, must not (deliver/mirror.c): threads, and collectives
 * of several communicators, send in an order of each replica's own. */
static int queue_flush_contexts(struct peer *p)
{
	enum { WAITING_MAX = 8 };
	uint32_t waiting[WAITING_MAX];
	int n = 0, sent = 0;

	for (struct match_request *r = p->queue.first, *next; r && n < WAITING_MAX; r = next) {
		int i = 0;

		next = r->next;
		while (i < n && waiting[i] != r->context)
			i++;
		if (i < n)
			continue;
		if (queue_send(p, r))
			sent++;
		else
			waiting[n++] = r->context;
	}
	return sent;
}

static int queue_flush(struct peer *p, uint32_t world)
{
	int sent = controls_flush(p, world);

	if (UNLIKELY(redundant_on))
		return p->first ? sent : sent + queue_flush_contexts(p);
	while (!p->first && p->queue.first && queue_send(p, p->queue.first))
		sent++;
	return sent;
}

int queues_flush(void)
{
	struct peer **at = &match.busy;
	int sent = 0;
	while (*at) {
		struct peer *p = *at;
		sent += queue_flush(p, (uint32_t)(p - match.peer));
		if (p->first || p->queue.first) {
			at = &p->next_busy;
			continue;
		}
		p->busy = false;
		p->blocked = match.suspended;
		*at = p->next_busy;
	}
	match.work -= !match.busy;
	return sent;
}

/* ---- the interface ---- */

/* A small message that is one run of bytes, with nothing before it: straight into the channel. */
static inline bool send_direct(const void *run, size_t bytes, uint32_t world, int tag,
			       struct comm *c, uint32_t mode)
{
	struct peer *p = &match.peer[world];
	if (UNLIKELY(p->blocked || bytes > p->eager_max))
		return false;
	uint32_t context = context_of(c, mode);
	struct flow *f = flow_of(context, world);
	struct envelope e = envelope_of(RECORD_EAGER, context, c->rank, tag, f, bytes, 0);
	if (UNLIKELY(!p->channel->send(world, &e, run)))
		return false;
	deliver_sent(&f->ledger, world, &e, run);
	count_message(mode, bytes);
	return true;
}

/* Every field that sending needs; references are the caller's affair. */
static void send_fill(struct match_request *r, const void *buf, size_t count, struct datatype *t,
		      int dst, int tag, struct comm *c, uint32_t mode)
{
	r->base.kind = REQUEST_SEND;
	r->base.buf = (void *)(uintptr_t)buf;
	r->base.count = count;
	r->base.type = t;
	r->base.comm = c;
	r->base.peer = dst;
	r->base.tag = tag;
	r->base.mode = mode;
	r->context = context_of(c, mode);
	r->world = dst == MPI_PROC_NULL ? MATCH_ANY : (uint32_t)c->world[dst];
	r->run = datatype_run(t, buf, count, &r->length);
	r->share = -1;
}

static inline bool may_go_direct(uint32_t mode)
{
	return (mode & MATCH_MODE_MASK) != MATCH_SYNCHRONOUS;
}

int match_send(const void *buf, size_t count, struct datatype *t, int dst, int tag, struct comm *c,
	       uint32_t mode)
{
	size_t bytes;
	if (UNLIKELY(dst == MPI_PROC_NULL))
		return MPI_SUCCESS;
	if (UNLIKELY((mode & MATCH_MODE_MASK) == MATCH_BUFFERED))
		return buffered_send(buf, count, t, dst, tag, c, mode);
	const void *run = datatype_run(t, buf, count, &bytes);
	if (LIKELY((run || !bytes) && may_go_direct(mode)) &&
	    LIKELY(send_direct(run, bytes, (uint32_t)c->world[dst], tag, c, mode)))
		return MPI_SUCCESS;

	struct match_request r;
	memset(&r, 0, sizeof(r));
	send_fill(&r, buf, count, t, dst, tag, c, mode);
	send_start(&r);
	match_wait(&r.base);
	heap_free(r.pieces);
	return r.base.status.MPI_ERROR;
}

static int send_request(const void *buf, size_t count, struct datatype *t, int dst, int tag,
			struct comm *c, uint32_t mode, struct match_request **made)
{
	struct match_request *r = request_make();
	if (!r)
		return MPI_ERR_NO_MEM;
	send_fill(r, buf, count, t, dst, tag, c, mode);
	r->base.status = match_done.base.status;
	datatype_retain(t);
	comm_retain(c);
	*made = r;
	return MPI_SUCCESS;
}

int match_isend(const void *buf, size_t count, struct datatype *t, int dst, int tag, struct comm *c,
		uint32_t mode, struct request **req)
{
	struct match_request *r;
	size_t bytes;
	int rc;

	*req = &match_done.base;
	if (UNLIKELY(dst == MPI_PROC_NULL))
		return MPI_SUCCESS;
	if (UNLIKELY((mode & MATCH_MODE_MASK) == MATCH_BUFFERED))
		return buffered_send(buf, count, t, dst, tag, c, mode);
	const void *run = datatype_run(t, buf, count, &bytes);
	uint32_t world = (uint32_t)c->world[dst];
	bool announced = run && announces(&match.peer[world], world, bytes);
	if (LIKELY((run || !bytes) && may_go_direct(mode) && !announced) &&
	    LIKELY(send_direct(run, bytes, world, tag, c, mode)))
		return MPI_SUCCESS;
	rc = send_request(buf, count, t, dst, tag, c, mode, &r);
	if (rc)
		return rc;
	r->patient = run != NULL;
	*req = &r->base;
	send_start(r);
	return MPI_SUCCESS;
}

int match_send_init(const void *buf, size_t count, struct datatype *t, int dst, int tag,
		    struct comm *c, uint32_t mode, struct request **req)
{
	struct match_request *r;
	int rc = send_request(buf, count, t, dst, tag, c, mode, &r);
	if (rc)
		return rc;
	r->base.persistent = true;
	r->base.active = false;
	*req = &r->base;
	return MPI_SUCCESS;
}

/* A persistent send again. */
int send_restart(struct match_request *r)
{
	struct request *b = &r->base;
	r->finished = r->cancelling = false;
	b->status = match_done.base.status;
	heap_free(r->pieces);
	r->pieces = NULL;
	if (b->peer == MPI_PROC_NULL) {
		request_finish(r, MPI_SUCCESS);
	} else if ((b->mode & MATCH_MODE_MASK) == MATCH_BUFFERED) {
		int rc =
		    buffered_send(b->buf, b->count, b->type, b->peer, b->tag, b->comm, b->mode);
		request_finish(r, rc);
		return rc;
	} else {
		send_start(r);
	}
	return MPI_SUCCESS;
}
