// SPDX-License-Identifier: BSD-3-Clause
/* Buffered sends (MPI-3.1 3.6). What can leave at once does not need the buffer. The rest is packed
 * into a block of it and sent by a request of our own, which frees the block when it is through.
 *
 *   | block | payload | block | payload | block (free) ……… |      blocks in the order of addresses
 */
#include "match/internal.h"
#include "object/session.h"

#include <string.h>

struct buffer_block {
	struct buffer_block *next;
	size_t room;		  /* bytes behind this header */
	uint64_t stamp;		  /* which message it holds; 0: free */
	struct match_buffer *owner;
};

/* Somebody who waits until the messages up to `stamp` have left. */
struct buffer_waiter {
	struct buffer_waiter *next;
	uint64_t stamp;
	struct request *request;
};

struct match_buffer {
	void *start; /* what the user gave */
	size_t size;
	bool automatic;		    /* blocks come from the library's heap */
	struct buffer_block *first; /* of all blocks; automatic: of those in use */
	struct buffer_waiter *waiters;
	uint64_t stamps;
};

struct match_buffer *match_process_buffer;

static char *block_payload(struct buffer_block *b)
{
	return (char *)b + ALIGN_UP(sizeof(*b), 16);
}

/* What one message takes besides its payload must not exceed what MPI promises. */
enum { OVERHEAD_LEAST = 96 }; /* of the three interfaces: MPICH's */
_Static_assert(ALIGN_UP(sizeof(struct buffer_block), 16) + 2 * 16 <= OVERHEAD_LEAST,
	       "MPI_BSEND_OVERHEAD is too small");

int match_buffer_attach(struct match_buffer **at, void *buf, size_t size, bool automatic)
{
	if (*at)
		return MPI_ERR_BUFFER;
	struct match_buffer *m = heap_calloc(1, sizeof(*m));
	if (!m)
		return MPI_ERR_NO_MEM;
	char *begin = (char *)ALIGN_UP((uintptr_t)buf, 16), *end = (char *)buf + size;
	size_t header = ALIGN_UP(sizeof(struct buffer_block), 16);
	m->start = buf;
	m->size = automatic ? 0 : size;
	m->automatic = automatic;
	*at = m;
	if (automatic || begin + header > end)
		return MPI_SUCCESS; /* too small for any message; that is not an error yet */
	m->first = (struct buffer_block *)begin;
	*m->first = (struct buffer_block){.room = (size_t)(end - begin - (ptrdiff_t)header),
					  .owner = m};
	return MPI_SUCCESS;
}

static struct buffer_block *block_from_heap(struct match_buffer *m, size_t bytes)
{
	struct buffer_block *b = heap_alloc(ALIGN_UP(sizeof(*b), 16) + bytes);
	if (!b)
		return NULL;
	*b = (struct buffer_block){m->first, bytes, ++m->stamps, m};
	m->first = b;
	return b;
}

static struct buffer_block *block_take(struct match_buffer *m, size_t bytes)
{
	size_t need = ALIGN_UP(bytes, 16), header = ALIGN_UP(sizeof(struct buffer_block), 16);
	if (m->automatic)
		return block_from_heap(m, bytes);
	for (struct buffer_block *b = m->first; b; b = b->next) {
		if (b->stamp || b->room < bytes)
			continue;
		if (b->room >= need + header + 16) {
			struct buffer_block *rest =
			    (struct buffer_block *)(block_payload(b) + need);
			*rest = (struct buffer_block){
			    .next = b->next, .room = b->room - need - header, .owner = m};
			b->next = rest;
			b->room = need;
		}
		b->stamp = ++m->stamps;
		return b;
	}
	return NULL;
}

/* Is a message up to that stamp still in the buffer? */
static bool buffer_holds(const struct match_buffer *m, uint64_t stamp)
{
	for (const struct buffer_block *b = m->first; b; b = b->next)
		if (b->stamp && b->stamp <= stamp)
			return true;
	return false;
}

static void waiters_tell(struct match_buffer *m)
{
	struct buffer_waiter **at = &m->waiters;
	while (*at) {
		struct buffer_waiter *w = *at;
		if (buffer_holds(m, w->stamp)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		request_complete(w->request, MPI_SUCCESS);
		heap_free(w);
	}
}

static void block_to_heap(struct match_buffer *m, struct buffer_block *freed)
{
	struct buffer_block **at = &m->first;
	while (*at != freed)
		at = &(*at)->next;
	*at = freed->next;
	heap_free(freed);
}

void buffer_block_free(struct buffer_block *freed)
{
	struct match_buffer *m = freed->owner;
	freed->stamp = 0;
	if (m->automatic) {
		block_to_heap(m, freed);
	} else {
		for (struct buffer_block *b = m->first; b; b = b->next)
			while (!b->stamp && b->next && !b->next->stamp) {
				b->room += b->next->room + ALIGN_UP(sizeof(*b), 16);
				b->next = b->next->next;
			}
	}
	waiters_tell(m);
}

static bool buffer_is_empty(void *arg)
{
	return !buffer_holds(arg, UINT64_MAX);
}

int match_buffer_detach(struct match_buffer **at, void **buf, size_t *size)
{
	if (!*at)
		return MPI_ERR_BUFFER;
	match_wait_until(buffer_is_empty, *at);
	*buf = (*at)->start;
	*size = (*at)->size;
	heap_free(*at);
	*at = NULL;
	return MPI_SUCCESS;
}

int match_buffer_flush(struct match_buffer *m)
{
	if (!m)
		return MPI_ERR_BUFFER;
	match_wait_until(buffer_is_empty, m);
	return MPI_SUCCESS;
}

int match_buffer_iflush(struct match_buffer *m, struct request **request)
{
	if (!m)
		return MPI_ERR_BUFFER;
	struct request *r = match_request_new(REQUEST_COLL, NULL);
	struct buffer_waiter *w = heap_alloc(sizeof(*w));
	if (!r || !w) {
		heap_free(w);
		return MPI_ERR_NO_MEM;
	}
	*w = (struct buffer_waiter){m->waiters, m->stamps, r};
	m->waiters = w;
	*request = r;
	waiters_tell(m);
	return MPI_SUCCESS;
}

/* MPI-4.1 3.6.1: the communicator's, else its session's, else the process's. */
static struct match_buffer *buffer_of(const struct comm *c)
{
	if (c->buffer)
		return c->buffer;
	if (c->session && c->session->buffer)
		return c->session->buffer;
	return match_process_buffer;
}

int buffered_send(const void *buf, size_t count, struct datatype *t, int dst, int tag,
		  struct comm *c, uint32_t mode)
{
	size_t bytes;
	struct request *r;
	struct match_buffer *m = buffer_of(c);
	const void *run = datatype_run(t, buf, count, &bytes);
	if (dst == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (!m)
		return MPI_ERR_BUFFER;
	struct buffer_block *b = block_take(m, bytes);
	if (!b) {
		match_progress(); /* perhaps something has left meanwhile */
		b = block_take(m, bytes);
	}
	if (!b)
		return MPI_ERR_BUFFER;
	char *copy = block_payload(b);
	if (run && bytes)
		memcpy(copy, run, bytes);
	else
		datatype_pack(t, buf, count, 0, copy, bytes);
	int rc = match_isend(copy, bytes, (struct datatype *)MPI_BYTE, dst, tag, c,
			     mode & ~(uint32_t)MATCH_MODE_MASK, &r);
	if (rc || r == &match_done.base) {
		buffer_block_free(b);
		return rc;
	}
	((struct match_request *)r)->block = b;
	match_request_free(r);
	return MPI_SUCCESS;
}
