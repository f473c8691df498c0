/* SPDX-License-Identifier: BSD-3-Clause */
/* Gather and scatter over nodes, of blocks of which perhaps only the root and their owners know how
 * large they are. Small ones of a node travel together, between the root and who acts for the node;
 * larger ones go straight between their owner and the root: both know which they are.
 *
 *	gather	 | blocks of the node's members |	   the root knows their sizes
 *	scatter	 | sizes | blocks of the node's members |  those are in between who don't
 */
#include "coll/hier/hier.h"

#include "coll/hier/join.h"
#include "coll/cells/scratch.h"

enum { BLOCK_BYTES = 4096, LEAST_BYTES = 64 };

/* Schedules under way. */
enum { STRAIGHT, TOGETHER };

/* A root operation, as one member sees it. */
struct rooted {
	struct coll_home *h;
	const struct coll_args *a;
	const struct coll_hier *t;
	struct hier_team team;
	int acting; /* for this node: rank */
	bool root, acts;
	size_t limit;
	struct hier_train train;
};

/* What a node's members get together has to fit a cell. */
static size_t block_limit(const struct coll_hier *t)
{
	size_t fits = COLL_CELL_RING / 2 / (size_t)t->most;
	if (fits < LEAST_BYTES + sizeof(uint32_t))
		return 0;
	fits -= sizeof(uint32_t);
	return fits < BLOCK_BYTES ? fits : BLOCK_BYTES;
}

/* This process's own block. */
static struct coll_block own_block(const struct coll_args *a)
{
	bool root = a->root == a->comm->rank;
	if (a->kind == COLL_GATHER)
		return root ? coll_recv_block(a, a->root) : coll_send_one(a);
	return root ? coll_send_block(a, a->root) : coll_recv_one(a);
}

/* Of equal blocks everybody knows that they are large. */
bool hier_root_suits(const struct coll_args *a)
{
	size_t limit = block_limit(a->comm->coll->hier);
	return limit && (a->ragged || coll_block_bytes(own_block(a)) <= limit);
}

static void rooted_init(struct rooted *r, struct coll_home *h, const struct coll_args *a)
{
	const struct coll_hier *t = a->comm->coll->hier;
	*r = (struct rooted){.h = h,
			     .a = a,
			     .t = t,
			     .team = {t, a->root, 0},
			     .root = a->root == a->comm->rank,
			     .limit = block_limit(t),
			     .train = {.comm = a->comm, .tag = hier_tag(a->comm)}};
	r->acting = hier_acting(&r->team, t->node);
	r->acts = r->acting == a->comm->rank;
}

static struct coll_block bytes_block(char *at, size_t bytes)
{
	return (struct coll_block){at, bytes, (struct datatype *)MPI_BYTE};
}

static size_t small_bytes(const struct rooted *r, struct coll_block b)
{
	size_t bytes = coll_block_bytes(b);
	return bytes <= r->limit ? bytes : 0;
}

static char *pack(char *to, struct coll_block b)
{
	size_t bytes = coll_block_bytes(b);
	datatype_pack(b.type, b.buf, b.count, 0, to, bytes);
	return to + bytes;
}

static void note(struct rooted *r, int rc)
{
	r->train.rc = r->train.rc ? r->train.rc : rc;
}

static int rooted_end(struct rooted *r, char *room)
{
	hier_train_wait(&r->train, STRAIGHT);
	hier_train_wait(&r->train, TOGETHER);
	scratch_put(room);
	return r->train.rc;
}

/* The root's large blocks, from and to their owners; or this process's own one. */
static void straight_start(struct rooted *r)
{
	const struct coll_args *a = r->a;
	bool in = a->kind == COLL_GATHER;
	if (!r->root && coll_block_bytes(own_block(a)) <= r->limit)
		return;
	struct schedule *s = hier_train_next(&r->train, STRAIGHT);
	if (s && !r->root)
		(in ? schedule_send : schedule_recv)(s, own_block(a), a->root);
	for (int i = 0; s && r->root && i < r->t->n; i++) {
		struct coll_block b = in ? coll_recv_block(a, i) : coll_send_block(a, i);
		if (i != a->root && coll_block_bytes(b) > r->limit)
			(in ? schedule_recv : schedule_send)(s, b, i);
	}
	hier_train_start(&r->train, STRAIGHT, s);
}

/* ---- gather ---- */

static size_t small_of_node(const struct rooted *r, int node)
{
	size_t bytes = 0;
	for (int i = 0; i < hier_members(r->t, node); i++)
		bytes += small_bytes(r, coll_recv_block(r->a, hier_member(r->t, node, i)));
	return bytes;
}

/* The root: other nodes' blocks, one after another. NULL: no memory. */
static char *others_start(struct rooted *r)
{
	const struct coll_hier *t = r->t;
	size_t bytes = 0;
	for (int node = 0; node < t->nodes; node++)
		bytes += node == t->node ? 0 : small_of_node(r, node);
	char *room = scratch_get(bytes + 1), *at = room;
	struct schedule *s = room ? hier_train_next(&r->train, TOGETHER) : NULL;
	for (int node = 0; s && node < t->nodes; node++) {
		size_t n = node == t->node ? 0 : small_of_node(r, node);
		if (n)
			schedule_recv(s, bytes_block(at, n), hier_acting(&r->team, node));
		at += n;
	}
	hier_train_start(&r->train, TOGETHER, s);
	return room;
}

static void others_end(struct rooted *r, const char *at)
{
	const struct coll_hier *t = r->t;
	hier_train_wait(&r->train, TOGETHER);
	for (int node = 0; node < t->nodes; node++)
		for (int i = 0; node != t->node && i < hier_members(t, node); i++) {
			struct coll_block b = coll_recv_block(r->a, hier_member(t, node, i));
			size_t bytes = small_bytes(r, b);
			datatype_unpack(b.type, b.buf, b.count, 0, at, bytes);
			at += bytes;
		}
}

static void gather_root(struct rooted *r, uint64_t k)
{
	const struct coll_args *a = r->a;
	struct coll_home *h = r->h;
	char *room = others_start(r);
	if (!coll_in_place(a))
		note(r, coll_block_copy(coll_recv_block(a, a->root), coll_send_one(a)));
	for (int i = 0; i < h->n; i++) {
		if (i == h->rank)
			continue;
		struct coll_header *d = cells_deposit_of(h, i, k);
		struct coll_block b = coll_recv_block(a, hier_member(r->t, r->t->node, i));
		note(r,
		     cells_take(h, i, cells_payload(h, i, d), 0, d->bytes, b.buf, b.count, b.type));
	}
	cells_finish_ring(h, k);
	hier_tell(h);
	if (room)
		others_end(r, room);
	scratch_put(room);
}

/* Returns what the schedule sends from. */
static char *gather_act(struct rooted *r, uint64_t k)
{
	struct coll_home *h = r->h;
	struct coll_block own = own_block(r->a);
	char *room = scratch_get((size_t)h->n * r->limit + 1), *at = room;
	for (int i = 0; room && i < h->n; i++) {
		if (i == h->rank) {
			at = small_bytes(r, own) ? pack(at, own) : at;
			continue;
		}
		struct coll_header *d = cells_deposit_of(h, i, k);
		memcpy(at, cells_payload(h, i, d), d->bytes);
		at += d->bytes;
	}
	cells_finish_ring(h, k);
	hier_tell(h);
	struct schedule *s = room ? hier_train_next(&r->train, TOGETHER) : NULL;
	if (s && at > room)
		schedule_send(s, bytes_block(room, (size_t)(at - room)), r->a->root);
	hier_train_start(&r->train, TOGETHER, s);
	return room;
}

int hier_gather(struct coll_home *h, const struct coll_args *a)
{
	struct rooted r;
	char *room = NULL;
	rooted_init(&r, h, a);
	straight_start(&r);
	uint64_t k = cells_begin(h);
	if (r.root) {
		gather_root(&r, k);
	} else if (r.acts) {
		room = gather_act(&r, k);
	} else {
		struct coll_block own = own_block(a);
		size_t bytes = small_bytes(&r, own);
		char *to = cells_room(h, k, bytes);
		if (bytes)
			pack(to, own);
		cells_publish_ring(h, k);
		cells_finish(h, k);
	}
	hier_tell(h);
	return rooted_end(&r, room);
}

/* ---- scatter ---- */

/* What who acts for a node gets from the root. Returns its end. */
static char *pack_node(const struct rooted *r, int node, char *at)
{
	int n = hier_members(r->t, node);
	uint32_t *sizes = (uint32_t *)at;
	at = (char *)(sizes + n);
	for (int i = 0; i < n; i++) {
		int rank = hier_member(r->t, node, i);
		struct coll_block b = coll_send_block(r->a, rank);
		sizes[i] = rank == r->a->root ? 0 : (uint32_t)small_bytes(r, b);
		at = sizes[i] ? pack(at, b) : at;
	}
	return at;
}

static size_t node_most(const struct rooted *r, int node)
{
	size_t each = sizeof(uint32_t) + r->limit;
	return ALIGN_UP((size_t)hier_members(r->t, node) * each, sizeof(uint64_t));
}

/* Returns what the schedule sends from. */
static char *scatter_root(struct rooted *r, uint64_t k)
{
	const struct coll_hier *t = r->t;
	struct coll_home *h = r->h;
	size_t most = node_most(r, t->node), bytes = 0;
	for (int node = 0; node < t->nodes; node++)
		bytes += node == t->node ? 0 : node_most(r, node);
	char *room = scratch_get(bytes + most), *at = room + most;
	struct schedule *s = room ? hier_train_next(&r->train, TOGETHER) : NULL;
	for (int node = 0; s && node < t->nodes; node++) {
		if (node == t->node)
			continue;
		size_t n = (size_t)(pack_node(r, node, at) - at);
		schedule_send(s, bytes_block(at, n), hier_acting(&r->team, node));
		at += node_most(r, node);
	}
	hier_train_start(&r->train, TOGETHER, s);
	if (h->n > 1) {
		size_t n = room ? (size_t)(pack_node(r, t->node, room) - room) : 0;
		char *cell = cells_room(h, k, n);
		if (n)
			memcpy(cell, room, n);
		cells_publish_ring(h, k);
	}
	if (r->a->rbuf != MPI_IN_PLACE)
		note(r, coll_block_copy(coll_recv_one(r->a), own_block(r->a)));
	return room;
}

/* Member i's block in a table. */
struct hier_root_found {
	const char *at;
	size_t bytes;
};
static struct hier_root_found find(const char *table, int n, int i)
{
	const uint32_t *sizes = (const uint32_t *)table;
	size_t at = 0;
	for (int m = 0; m < i; m++)
		at += sizes[m];
	return (struct hier_root_found){(const char *)(sizes + n) + at, i < n ? sizes[i] : 0};
}

static int take_small(const struct rooted *r, int member, const char *table)
{
	struct coll_block to = own_block(r->a);
	struct hier_root_found f = find(table, r->h->n, r->h->rank);
	return cells_take(r->h, member, f.at, 0, f.bytes, to.buf, to.count, to.type);
}

static void scatter_act(struct rooted *r, uint64_t k)
{
	struct coll_home *h = r->h;
	size_t most = node_most(r, r->t->node);
	char *room = scratch_get(most);
	struct schedule *s = room ? hier_train_next(&r->train, TOGETHER) : NULL;
	if (s)
		schedule_recv(s, bytes_block(room, most), r->a->root);
	hier_train_start(&r->train, TOGETHER, s);
	hier_train_wait(&r->train, TOGETHER);
	bool come = room && !r->train.rc;
	size_t n = come ? (size_t)(find(room, h->n, h->n).at - room) : 0;
	if (h->n > 1) {
		char *cell = cells_room(h, k, n);
		if (n)
			memcpy(cell, room, n);
		cells_publish_ring(h, k);
	}
	if (come)
		note(r, take_small(r, h->rank, room));
	scratch_put(room);
}

int hier_scatter(struct coll_home *h, const struct coll_args *a)
{
	struct rooted r;
	char *room = NULL;
	rooted_init(&r, h, a);
	straight_start(&r);
	uint64_t k = cells_begin(h);
	if (r.root) {
		room = scatter_root(&r, k);
	} else if (r.acts) {
		scatter_act(&r, k);
	} else {
		int from = hier_local(r.t, r.acting);
		struct coll_header *d = cells_deposit_of(h, from, k);
		note(&r,
		     d->bytes ? take_small(&r, from, cells_payload(h, from, d)) : MPI_ERR_OTHER);
	}
	cells_finish_ring(h, k);
	hier_tell(h);
	return rooted_end(&r, room);
}
