/* SPDX-License-Identifier: BSD-3-Clause */
/* What this process gives others in an operation that moves data, and takes from their deposits.
 * A payload up to coll_inline_max goes through the owner's cell, a larger one is read from the
 * owner's memory. Each owner chooses for itself: the header says which, so sizes that only their
 * owner knows (gatherv, alltoallv) need no agreement.
 */
#ifndef HALE_COLL_CELLS_GIVEN_H
#define HALE_COLL_CELLS_GIVEN_H

#include "coll/cells/cells.h"
#include "coll/cells/scratch.h"

/* A payload that others read from here; parts that aren't one run of bytes are packed first. */
struct given {
	void *packed;
	bool address; /* others read my memory: leave only after them */
	bool awaited; /* others may wait until this process is done with the operation */
};

/* Publishing wakes sleepers, unless an arrival follows: then they wait for that. */
typedef enum { LOUD, QUIET } publish_t;

static inline void publish(struct coll_home *h, uint64_t k, publish_t how)
{
	if (how == LOUD)
		cells_publish_ring(h, k);
	else
		cells_publish(h, k);
}

/* No memory: an empty deposit, so that nobody waits for ever. */
static inline int give_nothing(struct coll_home *h, uint64_t k, publish_t how)
{
	cells_room(h, k, 0);
	publish(h, k, how);
	return MPI_ERR_NO_MEM;
}

/* copy: b will be overwritten before its readers are done. */
static inline __attribute__((always_inline)) int give_block(struct coll_home *h, uint64_t k,
							    struct coll_block b, bool copy,
							    publish_t how, struct given *g)
{
	size_t bytes = coll_block_bytes(b), run;
	*g = (struct given){.awaited = how == QUIET};
	if (bytes <= cells_inline(h)) {
		char *room = cells_room(h, k, bytes);
		if (UNLIKELY(!b.type->contiguous))
			datatype_pack(b.type, b.buf, b.count, 0, room, bytes);
		else if (LIKELY(b.buf)) /* NULL is allowed for no elements */
			memcpy(room, b.buf, bytes);
		publish(h, k, how);
		return MPI_SUCCESS;
	}
	void *p = copy ? NULL : datatype_run(b.type, b.buf, b.count, &run);
	if (!p) {
		p = g->packed = scratch_get(bytes);
		if (!p)
			return give_nothing(h, k, how);
		datatype_pack(b.type, b.buf, b.count, 0, p, bytes);
	}
	g->address = true;
	cells_point(h, k, p, bytes, 0);
	publish(h, k, how);
	return MPI_SUCCESS;
}

static inline __attribute__((always_inline)) int take_block(const struct coll_home *h, uint64_t k,
							    int member, struct coll_block to)
{
	struct coll_header *d = cells_deposit_of(h, member, k);
	const char *local = d->address ? NULL : cells_payload(h, member, d);
	return cells_take(h, member, local, d->address, d->bytes, to.buf, to.count, to.type);
}

/* The end of an operation in which g was given: readers of an address come first. Where only others
 * read, nobody sleeps for this process's end, but for room that it needs much later; then the next
 * operation here wakes it. */
static inline void leave(struct coll_home *h, uint64_t k, struct given *g, int reader)
{
	if (g->awaited)
		cells_finish_ring(h, k);
	else
		cells_finish(h, k);
	if (g->address) {
		if (reader >= 0)
			cells_wait(&h->cells[reader]->progress, cells_done(k));
		else
			cells_wait_all(h, cells_done(k));
	}
	scratch_put(g->packed);
}

static inline int first_error(int a, int b)
{
	return a ? a : b;
}

/* Only large payloads are waited for, and the room that they take. */
static inline void finish_reader(struct coll_home *h, uint64_t k, const struct coll_header *d)
{
	if (LIKELY(d->bytes <= COLL_HEADER_SMALL))
		cells_finish_small(h, k);
	else
		cells_finish_ring(h, k);
}

#endif
