/* SPDX-License-Identifier: BSD-3-Clause */
/* Alltoall over nodes of blocks of some KiB. What all members of a node have for one member of
 * another node goes there as one message, a bundle: they take turns in putting bundles together out
 * of each other's memory. It comes to where it belongs, if its blocks lie there in a row. So there
 * are fewer messages, which cost. Blocks of a node's members for each other are read once.
 *
 *	deposit		| where, bytes of each block |		in the order of the map
 *	between nodes	| blocks of a node's members |		for one member of another node
 */
#include "coll/hier/hier.h"

#include "coll/hier/join.h"
#include "coll/cells/scratch.h"

/* Larger blocks cost more to put together than the messages that this saves. Up to PIECED a bundle
 * goes in pieces that the network takes without an answer: waiting for that costs more than the
 * copy, where processes share cores. */
enum { UPTO = 16384, PIECE = 32768, PIECES = 8, PIECED = PIECES * PIECE };

struct hier_bundles_entry {
	uint64_t where, bytes; /* 0: it doesn't go this way */
};

struct bundle {
	struct request *req[PIECES];
	char *room; /* NULL: straight from, or to, the user's memory */
	int node;   /* that it comes from; -1: it is sent */
};

struct bundles {
	struct coll_home *h;
	const struct coll_args *a;
	const struct coll_hier *t;
	size_t above, upto; /* blocks of more, and of at most, so many bytes */
	int tag;
	char *packed;			/* what isn't one run of bytes */
	struct hier_bundles_entry *row; /* [members of this node] their blocks for one member */
	struct bundle *all;		/* [count] under way */
	int count;
	int rc;
};

static struct datatype *bytes_type(void)
{
	return (struct datatype *)MPI_BYTE;
}

static void note(struct bundles *x, int rc)
{
	x->rc = x->rc ? x->rc : rc;
}

size_t hier_bundles_upto(const struct coll_home *h, const struct coll_args *a)
{
	size_t table = (size_t)a->comm->size * sizeof(struct hier_bundles_entry);
	return h->reads && !coll_in_place(a) && table <= COLL_CELL_RING / 2 ? UPTO : 0;
}

static bool goes(const struct bundles *x, size_t bytes)
{
	return bytes > x->above && bytes <= x->upto;
}

bool hier_bundles_give(const struct coll_args *a, size_t above, size_t upto)
{
	for (int i = 0; i < a->comm->size; i++) {
		size_t bytes = coll_block_bytes(coll_send_block(a, i));
		if (i != a->comm->rank && bytes > above && bytes <= upto)
			return true;
	}
	return false;
}

/* Who of a node puts together what goes to a member of another one. */
static int handler(const struct coll_hier *t, int node, int rank)
{
	return hier_member(t, node, hier_local(t, rank) % hier_members(t, node));
}

static bool bundles_init(struct bundles *x)
{
	const struct coll_hier *t = x->t;
	size_t here = (size_t)x->h->n, most = 0;
	for (int node = 0; node < t->nodes; node++) /* one comes from it, these go there: */
		most += 1 + ((size_t)hier_members(t, node) + here - 1) / here;
	x->row = heap_alloc(here * sizeof(*x->row));
	x->all = heap_alloc(most * sizeof(*x->all));
	return x->row && x->all;
}

static struct bundle *bundle_add(struct bundles *x, int node, char *room)
{
	x->all[x->count] = (struct bundle){{NULL}, room, node};
	return &x->all[x->count++];
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t piece_of(size_t bytes)
{
	return bytes <= PIECED ? PIECE : bytes;
}

/* ---- what comes ---- */

/* How much comes from that node. first: where it begins, if its blocks lie in a row; else NULL. */
static size_t coming(const struct bundles *x, int node, char **first)
{
	size_t total = 0, run;
	char *end = NULL;
	bool row = true;
	*first = NULL;
	for (int i = 0; i < hier_members(x->t, node); i++) {
		struct coll_block b = coll_recv_block(x->a, hier_member(x->t, node, i));
		size_t bytes = coll_block_bytes(b);
		if (!goes(x, bytes))
			continue;
		char *p = datatype_run(b.type, b.buf, b.count, &run);
		row = row && p && (!total || p == end);
		if (!total)
			*first = p;
		end = p + bytes;
		total += bytes;
	}
	if (!row)
		*first = NULL;
	return total;
}

static void receive(struct bundles *x, int node)
{
	char *to, *room = NULL;
	size_t bytes = coming(x, node, &to);
	if (!bytes)
		return;
	if (!to)
		to = room = scratch_get(bytes);
	if (!to) {
		note(x, MPI_ERR_NO_MEM);
		return;
	}
	struct bundle *u = bundle_add(x, node, room);
	size_t piece = piece_of(bytes);
	for (size_t at = 0, i = 0; at < bytes; at += piece, i++)
		note(x, match_irecv(to + at, min_size(piece, bytes - at), bytes_type(),
				    handler(x->t, node, x->a->comm->rank), x->tag, x->a->comm,
				    MATCH_COLL, &u->req[i]));
}

static void spread(struct bundles *x, const struct bundle *u)
{
	const char *at = u->room;
	for (int i = 0; i < hier_members(x->t, u->node); i++) {
		struct coll_block b = coll_recv_block(x->a, hier_member(x->t, u->node, i));
		size_t bytes = coll_block_bytes(b);
		if (!goes(x, bytes))
			continue;
		datatype_unpack(b.type, b.buf, b.count, 0, at, bytes);
		at += bytes;
	}
}

/* ---- what goes ---- */

/* Bytes of blocks that have to be packed. */
static size_t packed_bytes(const struct bundles *x)
{
	size_t bytes = 0, run;
	for (int i = 0; i < x->t->n; i++) {
		struct coll_block b = coll_send_block(x->a, i);
		if (goes(x, coll_block_bytes(b)) && !datatype_run(b.type, b.buf, b.count, &run))
			bytes += coll_block_bytes(b);
	}
	return bytes;
}

static struct hier_bundles_entry entry_make(struct bundles *x, int rank, char **at)
{
	struct coll_block b = coll_send_block(x->a, rank);
	size_t bytes = coll_block_bytes(b), run;
	if (rank == x->a->comm->rank || !goes(x, bytes))
		return (struct hier_bundles_entry){0, 0};
	char *p = datatype_run(b.type, b.buf, b.count, &run);
	if (!p && x->packed) {
		p = *at;
		datatype_pack(b.type, b.buf, b.count, 0, p, bytes);
		*at += bytes;
	}
	/* without memory for it: who reads it finds out */
	return (struct hier_bundles_entry){(uintptr_t)p, bytes};
}

static void deposit(struct bundles *x, uint64_t k)
{
	size_t n = (size_t)x->t->n, bytes = packed_bytes(x);
	if (bytes && !(x->packed = scratch_get(bytes)))
		note(x, MPI_ERR_NO_MEM);
	char *room = cells_room(x->h, k, n * sizeof(struct hier_bundles_entry)), *at = x->packed;
	for (size_t i = 0; i < n; i++) {
		struct hier_bundles_entry e = entry_make(x, x->t->member[i], &at);
		memcpy(room + i * sizeof(e), &e, sizeof(e));
	}
	cells_publish_ring(x->h, k);
}

/* A neighbour's block for a member, by the map. */
static struct hier_bundles_entry entry_of(const struct bundles *x, uint64_t k, int member,
					  int index)
{
	struct coll_header *d = cells_deposit_of(x->h, member, k);
	struct hier_bundles_entry e;
	memcpy(&e, cells_payload(x->h, member, d) + (size_t)index * sizeof(e), sizeof(e));
	return e;
}

static int copy(const struct bundles *x, int member, char *to)
{
	const struct hier_bundles_entry *e = &x->row[member];
	if (!e->bytes)
		return MPI_SUCCESS;
	if (member != x->h->rank)
		return cells_read(x->h, member, e->where, to, e->bytes);
	if (!e->where)
		return MPI_ERR_NO_MEM;
	memcpy(to, (const void *)(uintptr_t)e->where, e->bytes);
	return MPI_SUCCESS;
}

/* Its neighbours' blocks from its own on, so that not all members read from the same one first. */
static void put_together(struct bundles *x, char *room)
{
	size_t at = 0;
	for (int i = 0; i < x->h->rank; i++)
		at += x->row[i].bytes;
	char *to = room + at;
	for (int i = x->h->rank; i < x->h->n; to += x->row[i++].bytes)
		note(x, copy(x, i, to));
	to = room;
	for (int i = 0; i < x->h->rank; to += x->row[i++].bytes)
		note(x, copy(x, i, to));
}

static void send(struct bundles *x, uint64_t k, int rank)
{
	size_t bytes = 0;
	char *room = NULL, *from;
	for (int i = 0; i < x->h->n; i++) {
		x->row[i] = entry_of(x, k, i, x->t->index[rank]);
		bytes += x->row[i].bytes;
	}
	const struct hier_bundles_entry *own = &x->row[x->h->rank];
	if (!bytes)
		return;
	if (bytes == own->bytes && own->where)
		from = (char *)(uintptr_t)own->where;
	else
		from = room = scratch_get(bytes);
	if (!from) {
		note(x, MPI_ERR_NO_MEM);
		return;
	}
	if (room)
		put_together(x, room);
	size_t piece = piece_of(bytes);
	if (bytes <= PIECED) {
		for (size_t at = 0; at < bytes; at += piece)
			note(x, match_send(from + at, min_size(piece, bytes - at), bytes_type(),
					   rank, x->tag, x->a->comm, MATCH_COLL));
		scratch_put(room);
		return;
	}
	struct bundle *u = bundle_add(x, -1, room);
	note(x, match_isend(from, bytes, bytes_type(), rank, x->tag, x->a->comm, MATCH_COLL,
			    &u->req[0]));
}

static void send_all(struct bundles *x, uint64_t k)
{
	const struct coll_hier *t = x->t;
	for (int n = 1; n < t->nodes; n++) {
		int node = (t->node + n) % t->nodes;
		for (int i = x->h->rank; i < hier_members(t, node); i += x->h->n)
			send(x, k, hier_member(t, node, i));
	}
}

static void take_neighbours(struct bundles *x, uint64_t k)
{
	int own = x->t->index[x->a->comm->rank];
	for (int i = 1; i < x->h->n; i++) {
		int member = (x->h->rank + i) % x->h->n;
		struct hier_bundles_entry e = entry_of(x, k, member, own);
		struct coll_block b = coll_recv_block(x->a, hier_member(x->t, x->t->node, member));
		if (e.bytes)
			note(x, cells_take(x->h, member, NULL, e.where, e.bytes, b.buf, b.count,
					   b.type));
	}
}

/* ---- all of it ---- */

static void wait_bundles(struct bundles *x)
{
	for (int i = 0; i < x->count; i++) {
		struct bundle *u = &x->all[i];
		for (int k = 0; k < PIECES && u->req[k]; k++) {
			match_wait(u->req[k]);
			note(x, u->req[k]->status.MPI_ERROR);
			match_request_free(u->req[k]);
		}
		if (u->room && u->node >= 0)
			spread(x, u);
		scratch_put(u->room);
	}
}

int hier_bundles(struct coll_home *h, const struct coll_args *a, size_t above, size_t upto,
		 bool given)
{
	struct bundles x = {.h = h,
			    .a = a,
			    .t = a->comm->coll->hier,
			    .above = above,
			    .upto = upto,
			    .tag = hier_tag(a->comm)};
	uint64_t k = 0;
	if (!bundles_init(&x))
		note(&x, MPI_ERR_NO_MEM);
	for (int node = 0; !x.rc && node < x.t->nodes; node++)
		if (node != x.t->node)
			receive(&x, node);
	if (given) {
		k = cells_begin(h);
		deposit(&x, k);
		if (!x.rc)
			send_all(&x, k);
		take_neighbours(&x, k);
		cells_finish_ring(h, k);
		hier_tell(h);
	}
	wait_bundles(&x);
	if (given) /* what is deposited here may still be read */
		cells_wait_all(h, cells_done(k));
	scratch_put(x.packed);
	heap_free(x.row);
	heap_free(x.all);
	return x.rc;
}
