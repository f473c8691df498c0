/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine that moves schedules on. */
#include "coll/schedule.h"

#include <string.h>
#include "coll/hier/join.h"
#include "deliver/redundant.h"

typedef enum step_kind { STEP_SEND, STEP_RECV, STEP_COPY, STEP_REDUCE, STEP_ROUND } step_kind_t;

struct schedule_step {
	uint8_t kind; /* step_kind_t */
	bool local;   /* in the local group of an intercommunicator */
	int peer;
	struct coll_block block; /* sent, received, or the destination */
	struct coll_block from;	 /* copy: source; reduce: its buffer only */
	struct op *op;
	struct request *req;
};

struct temp {
	struct temp *next;
	char data[] __attribute__((aligned(CACHE_LINE)));
};

struct schedule {
	struct schedule *next, *prev; /* of those under way */
	struct comm *comm;
	int tag, local_tag;
	bool local; /* while it is made: schedule_among_local */
	bool finished;
	bool begun; /* false: it waits for an earlier one of the communicator */
	int error;  /* the first one */
	struct schedule_step *steps;
	size_t nsteps, room;
	size_t begin, end; /* the round at work */
	size_t checked;	   /* its messages before this have completed */
	struct temp *temps;
	struct request *request; /* NULL: somebody waits in schedule_run */
};

static struct {
	struct schedule *first;
	bool busy; /* advancing one may call progress again */
	bool suspended;
} active;

enum { TAG_MASK = 0x1fffffff, TAG_LASTING = 0x20000000 };

struct schedule *schedule_create_tagged(struct comm *c, int tag)
{
	struct schedule *s = heap_calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->comm = c;
	s->tag = s->local_tag = tag;
	return s;
}

struct schedule *schedule_create(struct comm *c)
{
	struct schedule *s = schedule_create_tagged(c, (int)(c->coll->sequence & TAG_MASK));
	if (!s)
		return NULL;
	c->coll->sequence++;
	if (c->local)
		s->local_tag = (int)(c->local->coll->sequence++ & TAG_MASK);
	return s;
}

int schedule_tag_pair(struct comm *c)
{
	int tag = (int)(c->coll->sequence & TAG_MASK);
	c->coll->sequence += 2;
	return tag;
}

int schedule_tag_lasting(struct comm *c)
{
	return TAG_LASTING | (int)(c->coll->lasting++ & TAG_MASK);
}

int schedule_tag_of(int pair, int which)
{
	return (pair + which) & TAG_MASK;
}

void schedule_destroy(struct schedule *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nsteps; i++) {
		struct schedule_step *st = &s->steps[i];
		if (st->block.type)
			datatype_release(st->block.type);
		if (st->from.type)
			datatype_release(st->from.type);
		if (st->op)
			op_release(st->op);
	}
	while (s->temps) {
		struct temp *next = s->temps->next;
		heap_free(s->temps);
		s->temps = next;
	}
	heap_free(s->steps);
	heap_free(s);
}

static struct schedule_step *step_add(struct schedule *s, step_kind_t kind)
{
	if (s->nsteps == s->room) {
		size_t room = s->room ? s->room * 2 : 16;
		struct schedule_step *steps = heap_realloc(s->steps, room * sizeof(*steps));
		if (!steps) {
			s->error = MPI_ERR_NO_MEM;
			return NULL;
		}
		s->steps = steps;
		s->room = room;
	}
	struct schedule_step *st = &s->steps[s->nsteps++];
	*st = (struct schedule_step){.kind = (uint8_t)kind, .local = s->local};
	return st;
}

static void step_block(struct coll_block *to, struct coll_block b)
{
	*to = b;
	datatype_retain(b.type);
}

static void message_add(struct schedule *s, step_kind_t kind, struct coll_block b, int peer)
{
	struct schedule_step *st = step_add(s, kind);
	if (!st)
		return;
	st->peer = peer;
	step_block(&st->block, b);
}

void schedule_send(struct schedule *s, struct coll_block b, int peer)
{
	message_add(s, STEP_SEND, b, peer);
}

void schedule_recv(struct schedule *s, struct coll_block b, int peer)
{
	message_add(s, STEP_RECV, b, peer);
}

void schedule_copy(struct schedule *s, struct coll_block dst, struct coll_block src)
{
	struct schedule_step *st = step_add(s, STEP_COPY);
	if (!st)
		return;
	step_block(&st->block, dst);
	step_block(&st->from, src);
}

void schedule_reduce(struct schedule *s, struct op *op, const void *in, struct coll_block inout)
{
	struct schedule_step *st = step_add(s, STEP_REDUCE);
	if (!st)
		return;
	step_block(&st->block, inout);
	st->from.buf = (char *)(uintptr_t)in;
	st->op = op;
	op_retain(op);
}

void schedule_round(struct schedule *s)
{
	step_add(s, STEP_ROUND);
}

void schedule_among_local(struct schedule *s, bool local)
{
	s->local = local;
}

void *schedule_temp(struct schedule *s, const struct datatype *t, size_t count)
{
	struct temp *m = heap_alloc(sizeof(*m) + coll_span(t, count));
	if (!m) {
		s->error = MPI_ERR_NO_MEM;
		return NULL;
	}
	m->next = s->temps;
	s->temps = m;
	return m->data - coll_low(t, count);
}

/* ---- running ---- */

static void note_error(struct schedule *s, int error)
{
	if (error && !s->error)
		s->error = error;
}

void schedule_fail(struct schedule *s, int error)
{
	note_error(s, error);
}

static void step_local(struct schedule *s, struct schedule_step *st)
{
	struct coll_block *b = &st->block;
	if (st->kind == STEP_COPY)
		note_error(s, coll_block_copy(*b, st->from));
	else if (st->kind == STEP_REDUCE)
		op_apply(st->op, st->from.buf, b->buf, b->count, b->type);
}

static void step_message(struct schedule *s, struct schedule_step *st)
{
	struct coll_block *b = &st->block;
	struct comm *c = st->local ? s->comm->local : s->comm;
	int tag = st->local ? s->local_tag : s->tag;
	int rc = MPI_SUCCESS;
	if (st->kind == STEP_SEND)
		rc = match_isend(b->buf, b->count, b->type, st->peer, tag, c, MATCH_COLL, &st->req);
	else if (st->kind == STEP_RECV)
		rc = match_irecv(b->buf, b->count, b->type, st->peer, tag, c, MATCH_COLL, &st->req);
	if (rc)
		st->req = NULL;
	note_error(s, rc);
}

static void round_begin(struct schedule *s)
{
	s->begin = s->checked = s->end;
	while (s->end < s->nsteps && s->steps[s->end].kind != STEP_ROUND)
		s->end++;
	for (size_t i = s->begin; i < s->end; i++)
		step_local(s, &s->steps[i]);
	for (size_t i = s->begin; i < s->end; i++)
		step_message(s, &s->steps[i]);
}

/* Have all messages of the round completed? */
static bool round_over(struct schedule *s)
{
	for (; s->checked < s->end; s->checked++) {
		struct request *r = s->steps[s->checked].req;
		if (!r)
			continue;
		if (!r->complete)
			return false;
		note_error(s, r->status.MPI_ERROR);
		s->steps[s->checked].req = NULL;
		match_request_free(r);
	}
	return true;
}

static void unlink_schedule(struct schedule *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else
		active.first = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->next = s->prev = NULL;
}

/* With replicas the schedules of a communicator run one after the other: then each replica sends
 * their messages in the same order. All members begin them in the same order, so none waits for one
 * that another member begins later; persistent ones, which members start in any order, have a
 * communicator each (coll/near.h). */
static bool must_wait(const struct schedule *s)
{
	if (LIKELY(!redundant_on))
		return false;
	for (const struct schedule *o = s->prev; o; o = o->prev)
		if (o->comm == s->comm)
			return true;
	return false;
}

/* Returns how many rounds were begun; finished says the rest. */
static int advance(struct schedule *s)
{
	int moved = 0;
	if (UNLIKELY(!s->begun)) {
		if (must_wait(s))
			return 0;
		s->begun = true;
		round_begin(s);
		moved = 1;
	}
	while (round_over(s)) {
		if (s->end == s->nsteps) {
			s->finished = true;
			return moved + 1;
		}
		s->end++; /* over the mark between rounds */
		round_begin(s);
		moved++;
	}
	return moved;
}

int schedule_progress(void)
{
	int moved = 0;
	if (!active.first || active.busy || active.suspended)
		return 0;
	active.busy = true;
	for (struct schedule *s = active.first, *next; s; s = next) {
		moved += advance(s);
		next = s->next;
		if (!s->finished)
			continue;
		unlink_schedule(s);
		if (s->request)
			request_complete(s->request, s->error);
	}
	active.busy = false;
	return moved;
}

bool schedule_under_way(void)
{
	return active.first;
}

void schedule_suspend(bool on)
{
	active.suspended = on;
}

/* At the end of the list: older ones are moved on first. */
static void link_schedule(struct schedule *s)
{
	struct schedule **at = &active.first, *last = NULL;
	while (*at) {
		last = *at;
		at = &last->next;
	}
	*at = s;
	s->prev = last;
}

static void schedule_begin(struct schedule *s)
{
	s->begun = !redundant_on;
	if (s->begun)
		round_begin(s);
	link_schedule(s);
	schedule_progress();
}

static bool run_over(void *arg)
{
	return ((struct schedule *)arg)->finished;
}

/* Lacking memory is found out before any message: the other members then wait for ours, as after
 * any other error of one member in a collective. */
int schedule_run(struct schedule *s)
{
	if (!s)
		return MPI_ERR_NO_MEM;
	int rc = s->error;
	if (!rc) {
		schedule_begin(s);
		if (!s->finished)
			match_wait_until(run_over, s);
		rc = s->error;
	}
	schedule_destroy(s);
	return rc;
}

static void request_done(struct request *r)
{
	schedule_destroy(r->extra);
	r->extra = NULL;
}

int schedule_start(struct schedule *s, struct request **req)
{
	if (!s)
		return MPI_ERR_NO_MEM;
	struct request *r = s->error ? NULL : match_request_new(REQUEST_COLL, s->comm);
	if (!r) {
		schedule_destroy(s);
		return MPI_ERR_NO_MEM;
	}
	r->active = true;
	r->extra = s;
	r->destroy = request_done;
	s->request = r;
	*req = r;
	schedule_begin(s);
	return MPI_SUCCESS;
}

int schedule_restart(struct schedule *s, struct request *r)
{
	if (!s || s->error)
		return MPI_ERR_NO_MEM;
	r->active = true;
	r->complete = 0;
	s->request = r;
	schedule_begin(s);
	return MPI_SUCCESS;
}

bool schedule_abandon(struct request *req)
{
	struct schedule *s = req->extra;
	for (size_t i = s->checked; i < s->end; i++)
		if (s->steps[i].kind == STEP_SEND && s->steps[i].req && !s->steps[i].req->complete)
			return false;
	for (size_t i = s->checked; i < s->end; i++)
		if (s->steps[i].req) {
			match_cancel(s->steps[i].req);
			match_request_free(s->steps[i].req);
		}
	if (!s->finished)
		unlink_schedule(s);
	request_complete(req, MPI_SUCCESS);
	match_request_free(req);
	return true;
}
