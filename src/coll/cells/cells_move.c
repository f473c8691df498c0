/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that move blocks, over shared cells: gather, scatter, allgather, alltoall. A deposit
 * holds one block for all that read it, or a table with a block for each member:
 *
 *	| where, bytes of block 0 | … of block n - 1 | blocks that lie here … |
 */
#include "coll/cells/cells_given.h"

size_t coll_inline_max = COLL_INLINE_DEFAULT;

struct cells_move_entry {
	uint64_t where; /* offset in the payload, or address when the header has one */
	uint64_t bytes;
};

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
	struct cells_move_entry *table = g->packed = scratch_get(n * sizeof(*table) + packed);
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
	size_t n = (size_t)h->n, bytes = n * sizeof(struct cells_move_entry);
	*g = (struct given){.awaited = how == QUIET};
	for (int i = 0; i < h->n; i++)
		if (i != h->rank)
			bytes += coll_block_bytes(block(a, i));
	if (bytes > most)
		return give_addresses(h, k, a, block, how, copy, g);
	struct cells_move_entry *table = (struct cells_move_entry *)cells_room(h, k, bytes);
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
	struct cells_move_entry e = {0};
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
