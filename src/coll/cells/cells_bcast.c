/* SPDX-License-Identifier: BSD-3-Clause */
/* One block to all over shared cells: from the cell, in pieces, or by single copies. */
#include "base/copy.h"
#include "coll/cells/cells_given.h"

static size_t piece_at(const struct coll_large *large, size_t i)
{
	size_t last = large->bytes ? (large->bytes - 1) / COLL_PIECE : 0;
	return (large->backward ? last - i : i) * COLL_PIECE;
}

/* Whether a broadcast of so many bytes gives its last piece first. Every other one does: its
 * buffers' ends were touched last, and are still in the caches. A last piece of at most
 * COLL_HEADER_SMALL bytes can't come first. It would lie in the header's `small`, where the first
 * piece has struct coll_large for the readers. */
static bool next_backward(const struct coll_home *h, size_t bytes)
{
	size_t last = bytes % COLL_PIECE;
	return !h->backward && (last == 0 || last > COLL_HEADER_SMALL);
}

static void give_pieces(struct coll_home *h, struct coll_block b, struct coll_large large)
{
	struct way_clock clock = {.runs = large.order.measure};
	size_t given = 0, pieces = 0;
	large.backward = h->backward = next_backward(h, large.bytes);
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
