/* SPDX-License-Identifier: BSD-3-Clause */
/* Far operations, the origin's side: a message says what is to be done; up to 4 KiB of data go with
 * it, more follow in a message of their own. What comes back is received straight where it goes.
 *
 *     origin                                        target
 *       │ UPDATE {address, layout, op, reply_tag, data} ──▶ │ in the order of sending, when it
 *       │ ◀─────────────── message reply_tag: old content   │ makes progress
 *       │ FLUSH ──────────────────────────────────────────▶ │
 *       │ ◀───────────────────────────────────── CONFIRM    │ all before it is done
 *
 * Everything is a message of match/ in the window's own communicator: so checkpoints, restarts
 * elsewhere and moves need nothing of their own. */
#include <string.h>
#include "object/layout_wire.h"
#include "rma/internal.h"

static const struct op *const *rma_ops(void)
{
	static const struct op *table[15];
	if (!table[0]) {
		const MPI_Op ops[] = {MPI_NO_OP, MPI_MAX,    MPI_MIN,	 MPI_SUM,     MPI_PROD,
				      MPI_LAND,	 MPI_BAND,   MPI_LOR,	 MPI_BOR,     MPI_LXOR,
				      MPI_BXOR,	 MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP};
		for (unsigned i = 0; i < ARRAY_LEN(ops); i++)
			table[i] = (const struct op *)ops[i];
	}
	return table;
}

const struct op *rma_op_at(unsigned i)
{
	return rma_ops()[i < 15 ? i : 0];
}

unsigned rma_op_place(const struct op *op)
{
	for (unsigned i = 0; i < 15; i++)
		if (rma_ops()[i] == op)
			return i;
	return 0;
}

/* ---- what is under way ---- */

struct rma_pending *rma_pending_add(struct win *w, int member)
{
	struct rma_pending *p = heap_calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->member = member;
	p->next = w->pending;
	w->pending = p;
	if (member >= 0)
		w->peer[member].pending++;
	return p;
}

static bool request_over(struct request **r, int *error)
{
	if (!*r)
		return true;
	if (!(*r)->complete)
		return false;
	if ((*r)->status.MPI_ERROR && !*error)
		*error = (*r)->status.MPI_ERROR;
	match_request_free(*r);
	*r = NULL;
	return true;
}

static bool pending_over(struct rma_pending *p)
{
	size_t got = p->reply && p->reply->complete ? p->reply->status._ucount : p->expected;
	if (p->reply && p->reply->complete && got != p->expected && !p->error)
		p->error = MPI_ERR_RMA_RANGE;
	bool over = request_over(&p->send, &p->error);
	over &= request_over(&p->data, &p->error);
	over &= request_over(&p->reply, &p->error);
	return over;
}

int rma_pending_sweep(struct win *w)
{
	int moved = 0;
	for (struct rma_pending **at = &w->pending; *at;) {
		struct rma_pending *p = *at;
		if (!pending_over(p)) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		if (p->member >= 0) {
			w->peer[p->member].pending--;
			if (p->error && !p->user)
				w->peer[p->member].fault = p->error;
		}
		if (p->user)
			request_complete(p->user, p->error);
		if (p->type)
			datatype_release(p->type);
		heap_free(p->memory);
		heap_free(p->copy);
		heap_free(p);
		moved++;
	}
	return moved;
}

/* ---- messages ---- */

static struct datatype *byte_type(void)
{
	return (struct datatype *)MPI_BYTE;
}

static uint32_t tag_next(struct win *w)
{
	w->tag = w->tag >= 0x3fffffff ? 1 : w->tag + 1;
	return w->tag;
}

/* What the origin names is odd, what comes back is even: a member is both. */
enum { DATA_ODD = 1 };

/* Sends bytes of heap memory, which it takes over. */
static int am_send(struct win *w, int member, struct rma_pending *p, void *memory, size_t bytes)
{
	p->memory = memory;
	return match_isend(memory, bytes, byte_type(), member, RMA_TAG_AM, w->comm, MATCH_STANDARD,
			   &p->send);
}

int rma_tell(struct win *w, int member, struct rma_am *am)
{
	struct rma_pending *p = rma_pending_add(w, -1);
	struct rma_am *copy = heap_alloc(sizeof(*copy));
	if (!p || !copy)
		return MPI_ERR_NO_MEM;
	*copy = *am;
	return am_send(w, member, p, copy, sizeof(*copy));
}

/* ---- one operation ---- */

static void am_describe(struct rma_am *am, const struct rma_call *c, uint64_t address)
{
	static const uint8_t kinds[] = {[RMA_PUT] = RMA_AM_PUT,
					[RMA_GET] = RMA_AM_GET,
					[RMA_UPDATE] = RMA_AM_UPDATE,
					[RMA_SWAP] = RMA_AM_UPDATE};
	memset(am, 0, sizeof(*am));
	am->kind = kinds[c->kind];
	am->swap = c->kind == RMA_SWAP;
	am->op = c->op ? (uint8_t)rma_op_place(c->op) : 0;
	am->address = address;
	am->bytes = c->count * c->type->size;
}

/* Does the origin give anything? */
static bool call_gives(const struct rma_call *c)
{
	if (c->kind == RMA_GET)
		return false;
	return c->kind != RMA_UPDATE || !c->op->no_op;
}

static int reply_expect(struct rma_pending *p, struct rma_call *c, struct rma_am *am)
{
	struct rma_span *to = c->kind == RMA_GET ? &c->origin : &c->result;
	if (!to->type || !am->bytes)
		return MPI_SUCCESS;
	am->reply_tag = tag_next(c->win) * 2;
	p->expected = am->bytes;
	return match_irecv(to->buf, to->count, to->type, c->target, (int)am->reply_tag,
			   c->win->comm, MATCH_STANDARD, &p->reply);
}

/* Larger data, in a message of their own. */
static int data_send(struct rma_call *c, const struct rma_am *am, struct rma_pending *p)
{
	struct rma_span s = c->origin;
	if (c->aside) {
		p->copy = heap_alloc(am->bytes);
		if (!p->copy)
			return MPI_ERR_NO_MEM;
		datatype_pack(s.type, s.buf, s.count, 0, p->copy, am->bytes);
		s = (struct rma_span){p->copy, am->bytes, byte_type()};
	}
	return match_isend(s.buf, s.count, s.type, c->target, (int)am->data_tag, c->win->comm,
			   MATCH_STANDARD, &p->data);
}

/* The message: am, layout, and data that fit (and for a swap, what it compares with). */
static int call_send(struct rma_call *c, struct rma_am *am, struct layout_ref layout,
		     struct rma_pending *p)
{
	size_t numbers = layout_wire_count(layout);
	size_t given = call_gives(c) ? am->bytes : 0;
	bool apart = given > RMA_INLINE_MAX;
	size_t inlined = (apart ? 0 : given) + (am->swap ? am->bytes : 0);
	size_t bytes = sizeof(*am) + numbers * sizeof(int64_t) + inlined;
	char *memory = heap_alloc(bytes);
	if (!memory)
		return MPI_ERR_NO_MEM;
	am->numbers = (uint32_t)numbers;
	am->data_tag = apart ? tag_next(c->win) * 2 + DATA_ODD : 0;
	memcpy(memory, am, sizeof(*am));
	int64_t *words = (int64_t *)(void *)(memory + sizeof(*am));
	char *at = (char *)layout_wire_write(layout, words);
	if (given && !apart) {
		datatype_pack(c->origin.type, c->origin.buf, c->origin.count, 0, at, given);
		at += given;
	}
	if (am->swap)
		memcpy(at, c->compare, am->bytes);
	int rc = am_send(c->win, c->target, p, memory, bytes);
	if (!rc && apart)
		rc = data_send(c, am, p);
	return rc;
}

static int request_give(struct rma_pending *p, struct win *w, struct request **request)
{
	struct request *r = match_request_new(REQUEST_COLL, w->comm);
	if (!r)
		return MPI_ERR_NO_MEM;
	p->user = r;
	*request = r;
	return MPI_SUCCESS;
}

int rma_far(struct rma_call *c, uint64_t address, struct request **request)
{
	struct rma_am am;
	struct layout_ref layout;
	basic_t basic = BASIC_BYTE;
	int rc = c->kind == RMA_UPDATE || c->kind == RMA_SWAP ? rma_basic(c, &basic) : MPI_SUCCESS;
	if (rc)
		return rc;
	am_describe(&am, c, address);
	am.basic = (uint16_t)basic;
	if (!layout_repeat(c->type->data, c->count, c->type->extent, &layout))
		return MPI_ERR_NO_MEM;
	struct rma_pending *p = rma_pending_add(c->win, c->target);
	if (!p)
		rc = MPI_ERR_NO_MEM;
	if (!rc && request)
		rc = request_give(p, c->win, request);
	if (!rc)
		rc = reply_expect(p, c, &am);
	if (!rc)
		rc = call_send(c, &am, layout, p);
	layout_release(layout);
	c->win->peer[c->target].unflushed |= c->kind != RMA_GET;
	return rc;
}

/* ---- confirmation ---- */

int rma_confirm_ask(struct win *w, int member, enum rma_am_kind kind)
{
	struct rma_am am = {.kind = (uint8_t)kind};
	w->peer[member].asked++;
	return rma_tell(w, member, &am);
}

static bool confirmed(void *arg)
{
	const struct rma_peer *p = arg;
	return p->confirmed == p->asked && !p->pending;
}

int rma_confirm_wait(struct win *w, int member)
{
	struct rma_peer *p = &w->peer[member];
	match_wait_until(confirmed, p);
	int fault = p->fault;
	p->unflushed = false;
	p->fault = MPI_SUCCESS;
	return fault;
}
