// SPDX-License-Identifier: BSD-3-Clause
/* Contexts and flows; the receives that wait for messages and the messages that wait for
 * receives. A context need not be known here as a communicator yet: a peer may be ahead. */
#include "match/internal.h"

#include <string.h>

void *match_memory(size_t bytes)
{
	void *p = heap_alloc(bytes);
	if (LIKELY(p != NULL))
		return p;
	log_warn("rank %u has no memory for a message of %lu bytes that nobody has received yet; "
		 "give the job more memory, or receive earlier",
		 match.rank, (unsigned long)bytes);
	link_abort(70);
}

static struct context *context_make(uint32_t id)
{
	size_t bytes = sizeof(struct context) + match.nranks * sizeof(struct flow *);
	struct context *c = match_memory(bytes);
	memset(c, 0, bytes);
	c->id = id;
	return match.context[id] = c;
}

struct flow *flow_make(uint32_t context, uint32_t peer)
{
	if (UNLIKELY(context >= MATCH_CONTEXTS || peer >= match.nranks)) {
		log_warn("internal error: rank %u was sent a message in context %u by rank %u, "
			 "which can't be; please report this",
			 match.rank, context, peer);
		link_abort(70);
	}
	struct context *c = match.context[context];
	if (!c)
		c = context_make(context);
	struct flow *f = match_memory(sizeof(*f));
	memset(f, 0, sizeof(*f));
	f->context = c;
	f->peer = peer;
	return c->flow[peer] = f;
}

/* ---- receives ---- */

static struct request_list *posted_list(struct match_request *r)
{
	if (UNLIKELY(r->world == MATCH_ANY)) {
		if (!match.context[r->context])
			context_make(r->context);
		return &match.context[r->context]->any;
	}
	return &flow_of(r->context, r->world)->posted;
}

void posted_add(struct match_request *r)
{
	r->state = STATE_POSTED;
	r->stamp = match.stamp++;
	list_add(posted_list(r), r);
}

void posted_remove(struct match_request *r)
{
	list_remove(posted_list(r), r);
	r->state = STATE_IDLE;
}

static inline struct match_request *first_with_tag(struct match_request *r, int tag)
{
	while (r && !tag_matches(r->base.tag, tag))
		r = r->next;
	return r;
}

struct match_request *posted_take(struct flow *f, int tag)
{
	struct match_request *r = first_with_tag(f->posted.first, tag);
	struct request_list *list = &f->posted;
	if (UNLIKELY(f->context->any.first != NULL)) {
		struct match_request *any = first_with_tag(f->context->any.first, tag);
		if (any && (!r || any->stamp < r->stamp)) {
			r = any;
			list = &f->context->any;
		}
	}
	if (r)
		list_remove(list, r);
	return r;
}

/* ---- messages ---- */

/* More or less is kept of what a peer sent. It hears of it when that is much. */
static void kept_add(uint32_t from, ptrdiff_t bytes)
{
	struct peer *p = &match.peer[from];
	p->kept += (size_t)bytes;
	if (LIKELY(p->pressed ? p->kept > PRESSURE_OFF : p->kept < PRESSURE_ON) ||
	    from == match.rank)
		return;
	p->pressed = !p->pressed;
	control_send(from, RECORD_PRESSURE, 0, p->pressed, NULL, 0);
}

void unexpected_add(struct flow *f, const struct envelope *e, const void *payload)
{
	struct match_message *m = match_memory(sizeof(*m) + e->length);
	struct context *c = f->context;
	object_init(&m->obj, OBJECT_MESSAGE);
	m->flow = f;
	m->from = f->peer;
	m->envelope = *e;
	if (e->length)
		memcpy(m->payload, payload, e->length);

	m->next = NULL;
	m->prev = f->last;
	if (f->last)
		f->last->next = m;
	else
		f->first = m;
	f->last = m;
	kept_add(f->peer, e->length);
	m->later = NULL;
	m->earlier = c->last;
	if (c->last)
		c->last->later = m;
	else
		c->first = m;
	c->last = m;
}

void unexpected_remove(struct match_message *m)
{
	struct flow *f = m->flow;
	struct context *c = f->context;
	if (m->prev)
		m->prev->next = m->next;
	else
		f->first = m->next;
	if (m->next)
		m->next->prev = m->prev;
	else
		f->last = m->prev;
	if (m->earlier)
		m->earlier->later = m->later;
	else
		c->first = m->later;
	if (m->later)
		m->later->earlier = m->earlier;
	else
		c->last = m->earlier;
	m->flow = NULL;
	kept_add(m->from, -(ptrdiff_t)m->envelope.length);
}

struct match_message *unexpected_find(uint32_t context, uint32_t world, int tag)
{
	struct match_message *m;
	if (LIKELY(world != MATCH_ANY)) {
		for (m = flow_of(context, world)->first; m; m = m->next)
			if (tag_matches(tag, m->envelope.tag))
				return m;
		return NULL;
	}
	for (m = match.context[context] ? match.context[context]->first : NULL; m; m = m->later)
		if (tag_matches(tag, m->envelope.tag))
			return m;
	return NULL;
}

size_t message_length(const struct match_message *m)
{
	struct rts rts;
	if (m->envelope.kind != RECORD_RTS)
		return m->envelope.length;
	memcpy(&rts, m->payload, sizeof(rts));
	return rts.length;
}

/* At the end of MPI; receives that nobody waited for stay their owners'. */
void match_queues_free(void)
{
	for (uint32_t id = 0; id < MATCH_CONTEXTS; id++) {
		struct context *c = match.context[id];
		if (!c)
			continue;
		for (struct match_message *m = c->first, *later; m; m = later) {
			later = m->later;
			heap_free(m);
		}
		for (uint32_t peer = 0; peer < match.nranks; peer++)
			heap_free(c->flow[peer]);
		heap_free(c);
		match.context[id] = NULL;
	}
}
