/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that move data over shared cells. A payload up to coll_inline_max goes through the
 * owner's cell, a larger one is read from the owner's memory. Each owner chooses for itself: the
 * header says which, so sizes that only their owner knows (gatherv, alltoallv) need no agreement.
 *
 * Two forms of payload: one block for whoever reads it, or a table with a block for each member:
 *
 *	| where, bytes of block 0 | … of block n - 1 | blocks that lie here … |
 */
#include "coll/cells.h"

#include "base/copy.h"
#include "coll/scratch.h"

size_t coll_inline_max = COLL_INLINE_DEFAULT;

struct entry {
	uint64_t where; /* offset in the payload, or address when the header has one */
	uint64_t bytes;
};

/* A payload that others read from here; parts that aren't one run of bytes are packed first. */
struct given {
	void *packed;
	bool address; /* others read my memory: leave only after them */
	bool awaited; /* others may wait until this process is done with the operation */
};

/* Publishing wakes sleepers, unless an arrival follows: then they wait for that. */
typedef enum { LOUD, QUIET } publish_t;

static void publish(struct coll_home *h, uint64_t k, publish_t how)
{
	if (how == LOUD)
		cells_publish_ring(h, k);
	else
		cells_publish(h, k);
}

/* No memory: an empty deposit, so that nobody waits for ever. */
static int give_nothing(struct coll_home *h, uint64_t k, publish_t how)
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
		if (LIKELY(b.type->contiguous))
			memcpy(room, b.buf, bytes);
		else
			datatype_pack(b.type, b.buf, b.count, 0, room, bytes);
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
static void leave(struct coll_home *h, uint64_t k, struct given *g, int reader)
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

static int first_error(int a, int b)
{
	return a ? a : b;
}

/* ---- one to all ---- */

static size_t piece_at(const struct coll_large *large, size_t i)
{
	size_t last = large->bytes ? (large->bytes - 1) / COLL_PIECE : 0;
	return (large->backward ? last - i : i) * COLL_PIECE;
}

/* Every other time from the end on: there the buffers were touched last, and what of them is left
 * in the caches is used before it goes. */
static void give_pieces(struct coll_home *h, struct coll_block b, struct coll_large large)
{
	struct way_clock clock = {.runs = large.order.measure};
	size_t given = 0, pieces = 0;
	large.backward = h->backward = !h->backward;
	do {
		uint64_t k = cells_begin(h);
		size_t at = piece_at(&large, pieces++);
		size_t n = large.bytes - at < COLL_PIECE ? large.bytes - at : COLL_PIECE;
		char *room = cells_room(h, k, n);
		way_clock_start(&clock);
		if (LIKELY(b.type->contiguous))
			copy_across(room, (const char *)b.buf + at, n);
		else
			datatype_pack(b.type, b.buf, b.count, at, room, n);
		way_clock_stop(&clock);
		if (n > COLL_HEADER_SMALL)
			memcpy(cells_header(h, h->rank, k)->small, &large, sizeof(large));
		cells_publish_ring(h, k);
		cells_finish(h, k);
		given += n;
	} while (given < large.bytes);
	way_note(&h->cell->costs, WAY_GIVE, WAY_PIECES, &clock, large.bytes);
}

/* Worth while for so many bytes a member. */
enum { PART_MIN = 16384 };
static bool in_parts(const struct coll_home *h, size_t bytes)
{
	return bytes / PART_MIN >= (size_t)h->n && h->n <= COLL_PARTS_MEMBERS && h->reads;
}

static void give_whole(struct coll_home *h, const void *p, struct coll_large large)
{
	uint64_t k = cells_begin(h);
	bool parts = in_parts(h, large.bytes);
	struct given g = {.address = true};
	struct way_clock clock = {.runs = large.order.measure};
	cells_point(h, k, p, large.bytes, parts ? COLL_PARTS : 0);
	memcpy(cells_header(h, h->rank, k)->small, &large, sizeof(large));
	publish(h, k, LOUD);
	if (parts)
		cells_parts_give(h, k, p, large.bytes, &clock);
	leave(h, k, &g, -1);
	way_note(&h->cell->costs, WAY_GIVE, WAY_SINGLE, &clock, large.bytes);
}

/* A deposit with an address: by parts if the root means to and the buffer is one run. */
static int take_whole(struct coll_home *h, uint64_t k, int root, struct coll_block b,
		      struct way_clock *clock)
{
	struct coll_header *d = cells_deposit_of(h, root, k);
	size_t run, bytes = d->bytes;
	void *p = NULL;
	if (d->offset & COLL_PARTS && bytes <= coll_block_bytes(b))
		p = datatype_run(b.type, b.buf, b.count, &run);
	if (p)
		return cells_parts_take(h, k, root, p, bytes, clock);
	if (d->offset & COLL_PARTS) { /* the root needn't wait for this one */
		cells_point(h, k, NULL, 0, 0);
		cells_publish_ring(h, k);
	}
	way_clock_start(clock);
	int rc = take_block(h, k, root, b);
	way_clock_stop(clock);
	cells_finish_ring(h, k);
	return rc;
}

/* The root of more than two members says with its first deposit which way the block goes. */
static __attribute__((noinline)) void bcast_give(struct coll_home *h, struct coll_block b)
{
	struct coll_large large = {.bytes = coll_block_bytes(b)};
	size_t run;
	void *p = NULL;
	if (large.bytes > cells_inline(h) && h->reads)
		p = datatype_run(b.type, b.buf, b.count, &run);
	if (p)
		large.order =
		    cells_order(h, h->bcast_plan, 1u << WAY_GIVE | 1u << WAY_TAKE, large.bytes);
	if (large.order.way == WAY_SINGLE)
		give_whole(h, p, large);
	else
		give_pieces(h, b, large);
}

/* Only large payloads are waited for, and the room that they take. */
static inline void finish_reader(struct coll_home *h, uint64_t k, const struct coll_header *d)
{
	if (LIKELY(d->bytes <= COLL_HEADER_SMALL))
		cells_finish_small(h, k);
	else
		cells_finish_ring(h, k);
}

static void take_piece(struct coll_block b, size_t at, const void *piece, size_t bytes)
{
	if (LIKELY(b.type->contiguous))
		copy_across((char *)b.buf + at, piece, bytes);
	else
		datatype_unpack(b.type, b.buf, b.count, at, piece, bytes);
}

static __attribute__((noinline)) int bcast_take(struct coll_home *h, int root, struct coll_block b)
{
	size_t room = coll_block_bytes(b), taken = 0, pieces = 0;
	struct coll_large large = {0};
	struct way_clock clock = {0};
	int rc = MPI_SUCCESS;
	do {
		uint64_t k = cells_begin(h);
		struct coll_header *d = cells_deposit_of(h, root, k);
		size_t n = d->bytes;
		if (!pieces && n > COLL_HEADER_SMALL)
			memcpy(&large, d->small, sizeof(large));
		else if (!pieces)
			large.bytes = n;
		size_t at = piece_at(&large, pieces++);
		clock.runs = large.order.measure;
		if (d->address) {
			rc = take_whole(h, k, root, b, &clock);
			break;
		}
		way_clock_start(&clock);
		if (at < room)
			take_piece(b, at, cells_payload(h, root, d), n < room - at ? n : room - at);
		way_clock_stop(&clock);
		finish_reader(h, k, d);
		taken += n;
	} while (taken < large.bytes);
	way_note(&h->cell->costs, WAY_TAKE, large.order.way, &clock, large.bytes);
	return large.bytes > room ? MPI_ERR_TRUNCATE : rc;
}

int cells_bcast(struct coll_home *h, const struct coll_args *a)
{
	struct coll_block b = coll_recv_one(a);
	if (h->n > 2 || !h->reads) {
		if (a->root != h->rank)
			return bcast_take(h, a->root, b);
		bcast_give(h, b);
		return MPI_SUCCESS;
	}
	size_t run, bytes = coll_block_bytes(b);
	void *p = in_parts(h, bytes) ? datatype_run(b.type, b.buf, b.count, &run) : NULL;
	if (p && a->root == h->rank) {
		give_whole(h, p, (struct coll_large){.bytes = bytes});
		return MPI_SUCCESS;
	}
	uint64_t k = cells_begin(h);
	if (a->root != h->rank) {
		struct coll_header *d = cells_deposit_of(h, a->root, k);
		struct way_clock clock = {0};
		if (d->address)
			return take_whole(h, k, a->root, b, &clock);
		int rc = take_block(h, k, a->root, b);
		finish_reader(h, k, d);
		return rc;
	}
	struct given g;
	int rc = give_block(h, k, b, false, LOUD, &g);
	leave(h, k, &g, -1);
	return rc;
}

/* ---- one block of each ---- */

int cells_gather(struct coll_home *h, const struct coll_args *a)
{
	uint64_t k = cells_begin(h);
	int rc = MPI_SUCCESS;
	if (a->root != h->rank) {
		struct given g;
		rc = give_block(h, k, coll_send_one(a), false, LOUD, &g);
		leave(h, k, &g, a->root);
		return rc;
	}
	if (!coll_in_place(a))
		rc = coll_block_copy(coll_recv_block(a, h->rank), coll_send_one(a));
	for (int i = 0; i < h->n; i++)
		if (i != h->rank)
			rc = first_error(rc, take_block(h, k, i, coll_recv_block(a, i)));
	cells_finish_ring(h, k);
	return rc;
}

/* Two members: each looks at the other's deposit. What this process keeps it copies meanwhile. */
static int exchange(struct coll_home *h, const struct coll_args *a, struct coll_block out,
		    bool copy, struct coll_block kept)
{
	int peer = 1 - h->rank;
	uint64_t k = cells_begin(h);
	struct given g;
	int rc = give_block(h, k, out, copy, LOUD, &g);
	if (!coll_in_place(a))
		rc = first_error(rc, coll_block_copy(coll_recv_block(a, h->rank), kept));
	rc = first_error(rc, take_block(h, k, peer, coll_recv_block(a, peer)));
	cells_all_done(h, k - 1);
	if (g.address || cells_deposit_of(h, peer, k)->address)
		leave(h, k, &g, peer);
	else
		cells_finish(h, k); /* nobody waits for that, but for the next deposit */
	return rc;
}

int cells_allgather(struct coll_home *h, const struct coll_args *a)
{
	struct coll_block own = coll_recv_block(a, h->rank);
	struct coll_block from = coll_in_place(a) ? own : coll_send_one(a);
	if (h->n == 2)
		return exchange(h, a, from, false, from);
	uint64_t k = cells_begin(h);
	struct given g;
	int rc = give_block(h, k, from, false, QUIET, &g);
	if (cells_arrive(h, k))
		cells_complete(h, k);
	cells_all_done(h, k - 1);
	if (!coll_in_place(a))
		rc = first_error(rc, coll_block_copy(own, from));
	for (int i = 1; i < h->n; i++) {
		int member = (h->rank + i) % h->n;
		rc = first_error(rc, take_block(h, k, member, coll_recv_block(a, member)));
	}
	leave(h, k, &g, -1);
	return rc;
}

/* ---- a block for each member ---- */

typedef struct coll_block(block_fn)(const struct coll_args *a, int member);

/* Large: addresses of the blocks, or of their packed copies. copy: the buffer will be overwritten
 * before everybody has read it. */
static int give_addresses(struct coll_home *h, uint64_t k, const struct coll_args *a,
			  block_fn *block, publish_t how, bool copy, struct given *g)
{
	size_t n = (size_t)h->n, packed = 0, run;
	for (int i = 0; i < h->n; i++) {
		struct coll_block b = block(a, i);
		if (copy || !datatype_run(b.type, b.buf, b.count, &run))
			packed += coll_block_bytes(b);
	}
	struct entry *table = g->packed = scratch_get(n * sizeof(*table) + packed);
	if (!table)
		return give_nothing(h, k, how);
	char *at = (char *)(table + n);
	for (int i = 0; i < h->n; i++) {
		struct coll_block b = block(a, i);
		void *p = datatype_run(b.type, b.buf, b.count, &run);
		table[i].bytes = coll_block_bytes(b);
		if (copy || !p) {
			datatype_pack(b.type, b.buf, b.count, 0, at, table[i].bytes);
			p = at;
			at += table[i].bytes;
		}
		table[i].where = (uintptr_t)p;
	}
	g->address = true;
	cells_point(h, k, table, n * sizeof(*table), 0);
	publish(h, k, how);
	return MPI_SUCCESS;
}

/* In the cell with up to so many bytes. */
static int give_table(struct coll_home *h, uint64_t k, const struct coll_args *a, block_fn *block,
		      size_t most, publish_t how, bool copy, struct given *g)
{
	size_t n = (size_t)h->n, bytes = n * sizeof(struct entry);
	*g = (struct given){.awaited = how == QUIET};
	for (int i = 0; i < h->n; i++)
		if (i != h->rank)
			bytes += coll_block_bytes(block(a, i));
	if (bytes > most)
		return give_addresses(h, k, a, block, how, copy, g);
	struct entry *table = (struct entry *)cells_room(h, k, bytes);
	size_t at = n * sizeof(*table);
	for (int i = 0; i < h->n; i++) {
		struct coll_block b = block(a, i);
		table[i].where = at;
		table[i].bytes = i == h->rank ? 0 : coll_block_bytes(b);
		datatype_pack(b.type, b.buf, b.count, 0, (char *)table + at, table[i].bytes);
		at += table[i].bytes;
	}
	publish(h, k, how);
	return MPI_SUCCESS;
}

static int take_entry(const struct coll_home *h, uint64_t k, int member, struct coll_block to)
{
	struct coll_header *d = cells_deposit_of(h, member, k);
	struct entry e = {0};
	if (!d->bytes)
		return MPI_ERR_OTHER;
	if (!d->address) {
		const char *table = cells_payload(h, member, d);
		memcpy(&e, table + (size_t)h->rank * sizeof(e), sizeof(e));
		return cells_take(h, member, table + e.where, 0, e.bytes, to.buf, to.count,
				  to.type);
	}
	int rc = cells_read(h, member, d->address + (size_t)h->rank * sizeof(e), &e, sizeof(e));
	if (rc)
		return rc;
	return cells_take(h, member, NULL, e.where, e.bytes, to.buf, to.count, to.type);
}

/* Equal blocks that fit into the header together lie there without a table; a table is longer than
 * that. Bytes of each; 0: they don't. */
static size_t scatter_small(const struct coll_home *h, const struct coll_args *a)
{
	size_t each = coll_block_bytes(coll_send_block(a, 0));
	if (each * (size_t)h->n > COLL_HEADER_SMALL)
		return 0;
	for (int i = 1; i < h->n; i++)
		if (coll_block_bytes(coll_send_block(a, i)) != each)
			return 0;
	return each;
}

static int scatter_give(struct coll_home *h, uint64_t k, const struct coll_args *a, struct given *g)
{
	size_t each;
	if (h->n == 2)
		return give_block(h, k, coll_send_block(a, 1 - h->rank), false, LOUD, g);
	if (!(each = scatter_small(h, a)))
		return give_table(h, k, a, coll_send_block, cells_inline(h), LOUD, false, g);
	*g = (struct given){0};
	char *room = cells_room(h, k, each * (size_t)h->n);
	for (int i = 0; i < h->n; i++) {
		struct coll_block b = coll_send_block(a, i);
		datatype_pack(b.type, b.buf, b.count, 0, room + (size_t)i * each, each);
	}
	publish(h, k, LOUD);
	return MPI_SUCCESS;
}

static int scatter_take(struct coll_home *h, uint64_t k, const struct coll_args *a)
{
	struct coll_block to = coll_recv_one(a);
	struct coll_header *d = cells_deposit_of(h, a->root, k);
	int rc;
	if (h->n == 2) {
		rc = take_block(h, k, a->root, to);
	} else if (d->bytes && d->bytes <= COLL_HEADER_SMALL) {
		size_t each = d->bytes / (size_t)h->n;
		rc = cells_take(h, a->root, d->small + (size_t)h->rank * each, 0, each, to.buf,
				to.count, to.type);
	} else {
		rc = take_entry(h, k, a->root, to);
	}
	finish_reader(h, k, d);
	return rc;
}

int cells_scatter(struct coll_home *h, const struct coll_args *a)
{
	uint64_t k = cells_begin(h);
	if (a->root != h->rank)
		return scatter_take(h, k, a);
	struct given g;
	int rc = scatter_give(h, k, a, &g);
	if (a->rbuf != MPI_IN_PLACE)
		rc =
		    first_error(rc, coll_block_copy(coll_recv_one(a), coll_send_block(a, a->root)));
	leave(h, k, &g, -1);
	return rc;
}

int cells_alltoall(struct coll_home *h, const struct coll_args *a)
{
	bool in_place = coll_in_place(a);
	block_fn *block = in_place ? coll_recv_block : coll_send_block;
	if (h->n == 2)
		return exchange(h, a, block(a, 1 - h->rank), in_place, block(a, h->rank));
	uint64_t k = cells_begin(h);
	struct given g;
	int rc = give_table(h, k, a, block, COLL_PIECE_TABLE, QUIET, in_place, &g);
	if (cells_arrive(h, k))
		cells_complete(h, k);
	cells_all_done(h, k - 1);
	if (!in_place)
		rc = first_error(
		    rc, coll_block_copy(coll_recv_block(a, h->rank), coll_send_block(a, h->rank)));
	for (int i = 1; i < h->n; i++) {
		int member = (h->rank + i) % h->n;
		rc = first_error(rc, take_entry(h, k, member, coll_recv_block(a, member)));
	}
	leave(h, k, &g, -1);
	return rc;
}
