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

static int give_block(struct coll_home *h, uint64_t k, struct coll_block b, publish_t how,
		      struct given *g)
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
	void *p = datatype_run(b.type, b.buf, b.count, &run);
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

static int take_block(const struct coll_home *h, uint64_t k, int member, struct coll_block to)
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

/* The whole block's bytes go with its first piece: a reader with another idea of them stays in
 * step. */
static void bcast_give(struct coll_home *h, struct coll_block b)
{
	size_t bytes = coll_block_bytes(b), at = 0;
	do {
		uint64_t k = cells_begin(h);
		size_t n = bytes - at < COLL_PIECE ? bytes - at : COLL_PIECE;
		char *room = cells_room(h, k, n);
		datatype_pack(b.type, b.buf, b.count, at, room, n);
		if (n > COLL_HEADER_SMALL)
			memcpy(cells_header(h, h->rank, k)->small, &bytes, sizeof(bytes));
		cells_publish_ring(h, k);
		cells_finish(h, k);
		at += n;
	} while (at < bytes);
}

static int bcast_take(struct coll_home *h, int root, struct coll_block b)
{
	size_t room = coll_block_bytes(b), bytes = 0, at = 0;
	do {
		uint64_t k = cells_begin(h);
		struct coll_header *d = cells_deposit_of(h, root, k);
		size_t n = d->bytes;
		if (!at && n > COLL_HEADER_SMALL)
			memcpy(&bytes, d->small, sizeof(bytes));
		else if (!at)
			bytes = n;
		if (at < room)
			datatype_unpack(b.type, b.buf, b.count, at, cells_payload(h, root, d),
					n < room - at ? n : room - at);
		cells_finish_ring(h, k);
		at += n;
	} while (at < bytes);
	return bytes > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
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
	uint64_t k = cells_begin(h);
	if (a->root != h->rank) {
		int rc = take_block(h, k, a->root, b);
		cells_finish_ring(h, k);
		return rc;
	}
	struct given g;
	int rc = give_block(h, k, b, LOUD, &g);
	leave(h, k, &g, -1);
	return rc;
}

int cells_gather(struct coll_home *h, const struct coll_args *a)
{
	uint64_t k = cells_begin(h);
	int rc = MPI_SUCCESS;
	if (a->root != h->rank) {
		struct given g;
		rc = give_block(h, k, coll_send_one(a), LOUD, &g);
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

int cells_allgather(struct coll_home *h, const struct coll_args *a)
{
	uint64_t k = cells_begin(h);
	struct given g;
	struct coll_block own = coll_recv_block(a, h->rank);
	struct coll_block from = coll_in_place(a) ? own : coll_send_one(a);
	int rc = give_block(h, k, from, QUIET, &g);
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

/* More than two members: beside a table lies in how many deposits its owner gives its blocks. */
static void say_rounds(struct coll_home *h, uint64_t k, uint64_t rounds)
{
	if (h->n > 2)
		memcpy(cells_header(h, h->rank, k)->small, &rounds, sizeof(rounds));
}

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
	say_rounds(h, k, 1);
	publish(h, k, how);
	return MPI_SUCCESS;
}

static int give_table(struct coll_home *h, uint64_t k, const struct coll_args *a, block_fn *block,
		      publish_t how, bool copy, struct given *g)
{
	size_t n = (size_t)h->n, bytes = n * sizeof(struct entry);
	*g = (struct given){.awaited = how == QUIET};
	for (int i = 0; i < h->n; i++)
		if (i != h->rank)
			bytes += coll_block_bytes(block(a, i));
	if (bytes > cells_inline(h))
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
	say_rounds(h, k, 1);
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

int cells_scatter(struct coll_home *h, const struct coll_args *a)
{
	uint64_t k = cells_begin(h);
	int rc;
	if (a->root != h->rank) {
		rc = take_entry(h, k, a->root, coll_recv_one(a));
		cells_finish_ring(h, k);
		return rc;
	}
	struct given g;
	rc = give_table(h, k, a, coll_send_block, LOUD, false, &g);
	if (a->rbuf != MPI_IN_PLACE)
		rc =
		    first_error(rc, coll_block_copy(coll_recv_one(a), coll_send_block(a, a->root)));
	leave(h, k, &g, -1);
	return rc;
}

/* ---- all to all ---- */

enum { SLICE_MIN = 1024, SLICES_MAX = 64 };

/* Blocks in slices, one of each block at a time, when the table of whole blocks is too large for
 * the cell but not so large that slicing would take longer than reading. Each member decides so for
 * what it gives, and says with its first deposit in how many rounds it comes. */
struct slicing {
	size_t slice; /* the same for all members */
	uint64_t rounds;
	bool whole; /* no slices: blocks or their addresses in one table */
};

static struct slicing slicing_of(const struct coll_home *h, const struct coll_args *a,
				 block_fn *block)
{
	size_t n = (size_t)h->n, most = 0, all = n * sizeof(struct entry);
	size_t slice = (COLL_PIECE_TABLE / n - sizeof(struct entry)) / SLICE_MIN * SLICE_MIN;
	for (int i = 0; i < h->n; i++) {
		size_t bytes = i == h->rank ? 0 : coll_block_bytes(block(a, i));
		all += bytes;
		most = bytes > most ? bytes : most;
	}
	if (n == 2 || all <= cells_inline(h) || !slice || most > slice * SLICES_MAX)
		return (struct slicing){slice, 1, true};
	return (struct slicing){slice, most > slice ? (most + slice - 1) / slice : 1, false};
}

static size_t slice_len(const struct slicing *s, size_t bytes, uint64_t round)
{
	size_t at = s->slice * round;
	return at >= bytes ? 0 : bytes - at < s->slice ? bytes - at : s->slice;
}

static void give_slices(struct coll_home *h, uint64_t k, const struct coll_args *a, block_fn *block,
			const struct slicing *s, uint64_t round)
{
	size_t n = (size_t)h->n, at = n * sizeof(struct entry), bytes = at;
	for (int i = 0; i < h->n; i++)
		if (i != h->rank)
			bytes += slice_len(s, coll_block_bytes(block(a, i)), round);
	struct entry *table = (struct entry *)cells_room(h, k, bytes);
	for (int i = 0; i < h->n; i++) {
		struct coll_block b = block(a, i);
		size_t len = i == h->rank ? 0 : slice_len(s, coll_block_bytes(b), round);
		table[i] = (struct entry){at, i == h->rank ? 0 : coll_block_bytes(b)};
		datatype_pack(b.type, b.buf, b.count, s->slice * round, (char *)table + at, len);
		at += len;
	}
	say_rounds(h, k, s->rounds);
	cells_publish(h, k);
}

static uint64_t rounds_of(const struct coll_header *d)
{
	uint64_t rounds = 1;
	if (d->bytes > COLL_HEADER_SMALL)
		memcpy(&rounds, d->small, sizeof(rounds));
	return rounds;
}

static int take_slice(struct coll_home *h, uint64_t k, int member, struct coll_block to,
		      const struct slicing *s, uint64_t round)
{
	struct coll_header *d = cells_deposit_of(h, member, k);
	const char *table = cells_payload(h, member, d);
	size_t room = coll_block_bytes(to), at = s->slice * round;
	struct entry e;
	memcpy(&e, table + (size_t)h->rank * sizeof(e), sizeof(e));
	size_t len = slice_len(s, e.bytes, round);
	if (at < room)
		datatype_unpack(to.type, to.buf, to.count, at, table + e.where,
				len < room - at ? len : room - at);
	return e.bytes > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

static int take_round(struct coll_home *h, uint64_t k, int member, struct coll_block to,
		      const struct slicing *s, uint64_t round, uint64_t *rounds)
{
	struct coll_header *d = cells_deposit_of(h, member, k);
	uint64_t theirs = h->n > 2 ? rounds_of(d) : 1;
	*rounds = theirs > *rounds ? theirs : *rounds;
	if (theirs > 1)
		return take_slice(h, k, member, to, s, round);
	return round ? MPI_SUCCESS : take_entry(h, k, member, to);
}

int cells_alltoall(struct coll_home *h, const struct coll_args *a)
{
	bool in_place = coll_in_place(a);
	block_fn *block = in_place ? coll_recv_block : coll_send_block;
	struct slicing s = slicing_of(h, a, block);
	uint64_t rounds = s.rounds;
	int rc = MPI_SUCCESS;
	for (uint64_t round = 0; round < rounds; round++) {
		uint64_t k = cells_begin(h);
		struct given g = {.awaited = true};
		if (!s.whole && round < s.rounds)
			give_slices(h, k, a, block, &s, round);
		else if (!round)
			rc = give_table(h, k, a, block, QUIET, in_place, &g);
		else
			give_nothing(h, k, QUIET);
		if (cells_arrive(h, k))
			cells_complete(h, k);
		cells_all_done(h, k - 1);
		if (!in_place && !round)
			rc = first_error(rc, coll_block_copy(coll_recv_block(a, h->rank),
							     coll_send_block(a, h->rank)));
		for (int i = 1; i < h->n; i++) {
			int member = (h->rank + i) % h->n;
			rc = first_error(rc, take_round(h, k, member, coll_recv_block(a, member),
							&s, round, &rounds));
		}
		leave(h, k, &g, -1);
	}
	return rc;
}
