// SPDX-License-Identifier: BSD-3-Clause
/* Buffered sends (MPI-3.1 3.6). What can leave at once does not need the buffer. The rest is packed
 * into a block of it and sent by a request of our own, which frees the block when it is through.
 *
 *   | block | payload | block | payload | block (free) ……… |      blocks in the order of addresses
 */
#include "match/internal.h"

#include <string.h>

struct buffer_block {
	struct buffer_block *next;
	size_t room; /* bytes behind this header */
	bool used;
};

static struct {
	void *start; /* what the user gave; NULL: nothing attached */
	size_t size;
	struct buffer_block *first;
} attached;

static char *block_payload(struct buffer_block *b)
{
	return (char *)b + ALIGN_UP(sizeof(*b), 16);
}

/* What one message takes besides its payload must not exceed what MPI promises. */
_Static_assert(2 * (sizeof(struct buffer_block) + 16) + 16 <= MPI_BSEND_OVERHEAD,
	       "MPI_BSEND_OVERHEAD is too small");

int match_buffer_attach(void *buf, size_t size)
{
	if (attached.start)
		return MPI_ERR_BUFFER;
	char *begin = (char *)ALIGN_UP((uintptr_t)buf, 16), *end = (char *)buf + size;
	size_t header = ALIGN_UP(sizeof(struct buffer_block), 16);
	attached.start = buf;
	attached.size = size;
	attached.first = NULL;
	if (begin + header > end)
		return MPI_SUCCESS; /* too small for any message; that is not an error yet */
	attached.first = (struct buffer_block *)begin;
	*attached.first = (struct buffer_block){.room = (size_t)(end - begin - (ptrdiff_t)header)};
	return MPI_SUCCESS;
}

static struct buffer_block *block_take(size_t bytes)
{
	size_t need = ALIGN_UP(bytes, 16), header = ALIGN_UP(sizeof(struct buffer_block), 16);
	for (struct buffer_block *b = attached.first; b; b = b->next) {
		if (b->used || b->room < bytes)
			continue;
		if (b->room >= need + header + 16) {
			struct buffer_block *rest =
			    (struct buffer_block *)(block_payload(b) + need);
			*rest =
			    (struct buffer_block){.next = b->next, .room = b->room - need - header};
			b->next = rest;
			b->room = need;
		}
		b->used = true;
		return b;
	}
	return NULL;
}

void buffer_block_free(struct buffer_block *freed)
{
	freed->used = false;
	for (struct buffer_block *b = attached.first; b; b = b->next)
		while (!b->used && b->next && !b->next->used) {
			b->room += b->next->room + ALIGN_UP(sizeof(*b), 16);
			b->next = b->next->next;
		}
}

static bool buffer_is_empty(void *arg)
{
	for (struct buffer_block *b = attached.first; b; b = b->next)
		if (b->used)
			return false;
	return true;
}

int match_buffer_detach(void **buf, size_t *size)
{
	if (!attached.start)
		return MPI_ERR_BUFFER;
	match_wait_until(buffer_is_empty, NULL);
	*buf = attached.start;
	*size = attached.size;
	memset(&attached, 0, sizeof(attached));
	return MPI_SUCCESS;
}

int buffered_send(const void *buf, size_t count, struct datatype *t, int dst, int tag,
		  struct comm *c, uint32_t mode)
{
	size_t bytes;
	struct request *r;
	const void *run = datatype_run(t, buf, count, &bytes);
	if (dst == MPI_PROC_NULL)
		return MPI_SUCCESS;
	if (!attached.start)
		return MPI_ERR_BUFFER;
	struct buffer_block *b = block_take(bytes);
	if (!b) {
		match_progress(); /* perhaps something has left meanwhile */
		b = block_take(bytes);
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
