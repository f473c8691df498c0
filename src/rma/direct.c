/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on memory that this process can address: its own, and what near members share. And
 * updates, which are the same whoever carries them out.
 *
 * Two updates of one element must not mix (MPI-3.1 11.7.1). Elements of 1, 2, 4 or 8 bytes in
 * shared parts are changed by the processor's compare-and-swap; everything else while the words of
 * the part are held. Which of both depends on part, address and kind of element only, so all do
 * the same for one element. */
#include "rma/internal.h"

#include <sched.h>
#include <string.h>
#include "object/op_kernels.h"

static char target_bytes[RMA_CHUNK] __attribute__((aligned(64)));
static char origin_bytes[RMA_CHUNK] __attribute__((aligned(64)));

/* ---- holding ---- */

void rma_hold(struct rma_words *words)
{
	uint32_t free_word = 0;
	for (int round = 0; !atomic_compare_exchange_weak_explicit(
		 &words->update, &free_word, 1, memory_order_acquire, memory_order_relaxed);
	     round++) {
		free_word = 0;
		if (round > 100)
			sched_yield();
		else
			cpu_relax();
	}
}

void rma_release(struct rma_words *words)
{
	atomic_store_explicit(&words->update, 0, memory_order_release);
}

/* ---- combining ---- */

/* Pairs that have a gap at their end as C structs, and none when packed. */
static struct datatype *rma_gapped(basic_t basic)
{
	switch (basic) {
	case BASIC_DOUBLE_INT:
		return (struct datatype *)MPI_DOUBLE_INT;
	case BASIC_LONG_INT:
		return (struct datatype *)MPI_LONG_INT;
	case BASIC_SHORT_INT:
		return (struct datatype *)MPI_SHORT_INT;
	case BASIC_LDOUBLE_INT:
		return (struct datatype *)MPI_LONG_DOUBLE_INT;
	default:
		return NULL;
	}
}

static void rma_combine_gapped(op_kernel_t *kernel, const struct datatype *t, const char *origin,
			       char *target, size_t count)
{
	char a[64] __attribute__((aligned(32))), b[64] __attribute__((aligned(32)));
	for (size_t i = 0; i < count; i++, origin += t->size, target += t->size) {
		datatype_unpack(t, a, 1, 0, origin, t->size);
		datatype_unpack(t, b, 1, 0, target, t->size);
		kernel(a, b, b, 1);
		datatype_pack(t, b, 1, 0, target, t->size);
	}
}

void rma_combine(const struct rma_update *u, const char *origin, char *target, size_t bytes)
{
	size_t size = basic_shapes[u->basic].size;
	const struct datatype *gapped = rma_gapped(u->basic);
	if (u->swap) {
		if (!memcmp(target, u->compare, bytes))
			memcpy(target, origin, bytes);
	} else if (u->op->replace) {
		memcpy(target, origin, bytes);
	} else if (gapped) {
		rma_combine_gapped(u->op->kernels[u->basic], gapped, origin, target, bytes / size);
	} else if (!u->op->no_op) {
		u->op->kernels[u->basic](origin, target, target, bytes / size);
	}
}

/* ---- one element by compare-and-swap ---- */

#define RMA_ATOMIC(bits)                                                                           \
	static void rma_atomic_##bits(const struct rma_update *u, const char *origin, char *at,    \
				      char *old)                                                   \
	{                                                                                          \
		_Atomic uint##bits##_t *word = (_Atomic uint##bits##_t *)(void *)at;               \
		uint##bits##_t was = atomic_load_explicit(word, memory_order_relaxed), next;       \
		do {                                                                               \
			next = was;                                                                \
			rma_combine(u, origin, (char *)&next, sizeof(next));                       \
		} while (!atomic_compare_exchange_weak(word, &was, next));                         \
		memcpy(old, &was, sizeof(was));                                                    \
	}
RMA_ATOMIC(8)
RMA_ATOMIC(16)
RMA_ATOMIC(32)
RMA_ATOMIC(64)

typedef void(rma_atomic_t)(const struct rma_update *u, const char *origin, char *at, char *old);

static rma_atomic_t *rma_atomic_of(const struct rma_part *part, size_t size, const char *at)
{
	if (!part->shared || (uintptr_t)at % size)
		return NULL;
	switch (size) {
	case 1:
		return rma_atomic_8;
	case 2:
		return rma_atomic_16;
	case 4:
		return rma_atomic_32;
	case 8:
		return rma_atomic_64;
	default:
		return NULL;
	}
}

/* Whole elements at `at`; what was there goes to old. */
static void rma_update_run(const struct rma_update *u, const struct rma_part *part,
			   struct rma_words *words, const char *origin, char *at, char *old,
			   size_t bytes)
{
	size_t size = basic_shapes[u->basic].size;
	rma_atomic_t *one = rma_atomic_of(part, size, at);
	if (one) {
		for (size_t i = 0; i < bytes; i += size)
			one(u, origin + i, at + i, old + i);
		return;
	}
	rma_hold(words);
	memcpy(old, at, bytes);
	if (u->swap || !u->op->no_op) {
		char *next = target_bytes;
		memcpy(next, old, bytes);
		rma_combine(u, origin, next, bytes);
		memcpy(at, next, bytes);
	}
	rma_release(words);
}

/* Bytes [skip, skip + n) of what is given, packed. */
static const char *rma_given(const struct rma_update *u, size_t skip, size_t n)
{
	size_t all;
	if (!u->swap && u->op->no_op)
		return origin_bytes;
	const char *run = datatype_run(u->origin.type, u->origin.buf, u->origin.count, &all);
	if (run)
		return run + skip;
	datatype_pack(u->origin.type, u->origin.buf, u->origin.count, skip, origin_bytes, n);
	return origin_bytes;
}

/* Bytes [skip, skip + n): whole elements, wherever their parts lie. */
static void rma_update_held(const struct rma_update *u, struct rma_words *words, char *at,
			    size_t count, const struct datatype *type, size_t skip, size_t n,
			    char *old)
{
	const char *given = rma_given(u, skip, n);
	rma_hold(words);
	datatype_pack(type, at, count, skip, old, n);
	if (u->swap || !u->op->no_op) {
		memcpy(target_bytes, old, n);
		rma_combine(u, given, target_bytes, n);
		datatype_unpack(type, at, count, skip, target_bytes, n);
	}
	rma_release(words);
}

static void rma_result(const struct rma_update *u, size_t skip, const char *old, size_t n)
{
	if (u->result.type)
		datatype_unpack(u->result.type, u->result.buf, u->result.count, skip, old, n);
}

static char old_bytes[RMA_CHUNK] __attribute__((aligned(64)));

/* One run of whole elements; returns its length. */
static size_t rma_update_piece(const struct rma_update *u, const struct rma_part *part,
			       struct rma_words *words, char *at, size_t bytes, size_t skip)
{
	for (size_t done = 0; done < bytes;) {
		size_t n = bytes - done < RMA_CHUNK ? bytes - done : RMA_CHUNK;
		rma_update_run(u, part, words, rma_given(u, skip + done, n), at + done, old_bytes,
			       n);
		rma_result(u, skip + done, old_bytes, n);
		done += n;
	}
	return bytes;
}

void rma_update_direct(const struct rma_update *u, const struct rma_part *part,
		       struct rma_words *words, char *at, size_t count, struct datatype *type)
{
	enum { PIECES = 64 };
	struct iovec piece[PIECES];
	size_t skip = 0, bytes, n;
	/* pairs may have a gap inside: their runs are no elements */
	bool pairs = basic_shapes[u->basic].tail || basic_shapes[u->basic].elements > 1;
	while (pairs && skip < u->bytes) {
		n = u->bytes - skip < RMA_CHUNK ? u->bytes - skip : RMA_CHUNK;
		rma_update_held(u, words, at, count, type, skip, n, old_bytes);
		rma_result(u, skip, old_bytes, n);
		skip += n;
	}
	while (skip < u->bytes) {
		n = datatype_iov(type, at, count, skip, piece, PIECES, &bytes);
		for (size_t i = 0; i < n; i++)
			skip += rma_update_piece(u, part, words, piece[i].iov_base,
						 piece[i].iov_len, skip);
		if (!n)
			return;
	}
}

/* ---- calls ---- */

int rma_basic(const struct rma_call *c, basic_t *basic)
{
	*basic = c->type->elements.basic;
	if (*basic != BASIC_NONE)
		return MPI_SUCCESS;
	*basic = BASIC_BYTE; /* several kinds: they can be replaced, as bytes */
	return c->op->replace || c->op->no_op ? MPI_SUCCESS : MPI_ERR_TYPE;
}

int rma_direct(struct rma_call *c, uint64_t address)
{
	struct win *w = c->win;
	char *at = rma_seen(w, c->target, address);
	if (c->kind == RMA_PUT) {
		datatype_copy(c->type, at, c->count, c->origin.type, c->origin.buf,
			      c->origin.count);
		return MPI_SUCCESS;
	}
	if (c->kind == RMA_GET) {
		datatype_copy(c->origin.type, c->origin.buf, c->origin.count, c->type, at,
			      c->count);
		return MPI_SUCCESS;
	}
	struct rma_update u = {.op = c->op,
			       .swap = c->kind == RMA_SWAP,
			       .compare = c->compare,
			       .origin = c->origin,
			       .result = c->result,
			       .bytes = c->count * c->type->size};
	int rc = rma_basic(c, &u.basic);
	if (!rc)
		rma_update_direct(&u, &w->peer[c->target].part, rma_words_of(w, c->target), at,
				  c->count, c->type);
	return rc;
}
