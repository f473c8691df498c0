/* SPDX-License-Identifier: BSD-3-Clause */
/* Alltoall over nodes. Small blocks of all members of a node for all members of another one travel
 * together: members take turns in handling the other nodes, so that all of them send and receive.
 * Larger ones go in bundles (hier_bundles.c), or straight from member to member. Both ends of a
 * block know which it is.
 *
 *	deposit		| bytes of each block | gives | blocks |
 *			in the order of the map; gives: has some for bundles
 *	between nodes	| bytes of each block | blocks |
 *			members of one by the other's
 *	deposit		| where each node's begin | what has come from each |
 */
#include "coll/hier/hier.h"

#include "coll/hier/join.h"
#include "coll/plans.h"
#include "coll/cells/scratch.h"

enum { BLOCK_BYTES = 4096, LEAST_BYTES = 16 };

/* Schedules under way. */
enum { STRAIGHT, TOGETHER };

struct exchange {
	struct coll_home *h;
	const struct coll_args *a;
	const struct coll_hier *t;
	bool in_place;
	size_t limit;	 /* larger blocks go in bundles, */
	size_t upto;	 /* or straight, if they are larger than that */
	bool given;	 /* somebody here has some for bundles */
	size_t *room_at; /* [nodes + 1] of a node that this member handles, in both of: */
	char *out, *in;
	struct hier_train train;
};

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t max_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* What a member deposits has to fit its cell: blocks for all; and those from all nodes that it
 * handles, for all members of its node. 0: they don't. */
static size_t block_limit(const struct coll_hier *t)
{
	size_t cell = COLL_CELL_RING / 2, most = (size_t)t->most;
	size_t blocks = ((size_t)t->nodes + most) * most;
	size_t each = min_size(cell / (size_t)t->n, cell / blocks), table = 2 * sizeof(uint32_t);
	return each < LEAST_BYTES + table ? 0 : min_size(BLOCK_BYTES, each - table);
}

static bool ragged(const struct coll_args *a)
{
	return a->rcounts;
}

/* Equal blocks, too large to travel with those of other members for other ones. */
static bool in_bundles(const struct coll_args *a)
{
	return !ragged(a) &&
	       coll_block_bytes(coll_recv_block(a, 0)) > block_limit(a->comm->coll->hier);
}

bool hier_alltoall_suits(const struct coll_home *h, const struct coll_args *a)
{
	if (!block_limit(a->comm->coll->hier))
		return false;
	if (!in_bundles(a))
		return true;
	return coll_block_bytes(coll_recv_block(a, 0)) <= hier_bundles_upto(h, a);
}

/* Which local member of a node handles what goes to and comes from another one. */
static int handler(const struct coll_hier *t, int node, int other)
{
	return other % hier_members(t, node);
}

static bool handles(const struct exchange *x, int member, int node)
{
	return node != x->t->node && handler(x->t, x->t->node, node) == member;
}

static size_t pair_count(const struct exchange *x, int node)
{
	return (size_t)hier_members(x->t, x->t->node) * (size_t)hier_members(x->t, node);
}

static struct coll_block outgoing(const struct exchange *x, int rank)
{
	return x->in_place ? coll_recv_block(x->a, rank) : coll_send_block(x->a, rank);
}

static uint32_t small_bytes(const struct exchange *x, int rank)
{
	size_t bytes = rank == x->a->comm->rank ? 0 : coll_block_bytes(outgoing(x, rank));
	return bytes <= x->limit ? (uint32_t)bytes : 0;
}

static void note(struct exchange *x, int rc)
{
	x->train.rc = x->train.rc ? x->train.rc : rc;
}

static size_t sum(const char *sizes, size_t first, size_t end)
{
	size_t bytes = 0;
	uint32_t size;
	for (size_t i = first; i < end; i++) {
		memcpy(&size, sizes + i * sizeof(size), sizeof(size));
		bytes += size;
	}
	return bytes;
}

/* False: no memory. */
static bool exchange_init(struct exchange *x, struct coll_home *h, const struct coll_args *a)
{
	const struct coll_hier *t = a->comm->coll->hier;
	size_t nodes = (size_t)t->nodes, at = 0, limit = block_limit(t), upto = 0;
	if (ragged(a))
		upto = max_size(limit, hier_bundles_upto(h, a));
	*x = (struct exchange){.h = h,
			       .a = a,
			       .t = t,
			       .in_place = coll_in_place(a),
			       .limit = limit,
			       .upto = upto,
			       .train = {.comm = a->comm, .tag = hier_tag(a->comm)}};
	if (!ragged(a)) /* no more room than that; and who sends too much is told */
		x->limit = min_size(x->limit, max_size(coll_block_bytes(coll_recv_block(a, 0)),
						       coll_block_bytes(outgoing(x, 0))));
	x->room_at = heap_alloc((nodes + 1) * sizeof(*x->room_at));
	if (!x->room_at)
		return false;
	for (int node = 0; node < t->nodes; node++) {
		x->room_at[node] = at;
		if (handles(x, h->rank, node))
			at += ALIGN_UP(pair_count(x, node) * (sizeof(uint32_t) + x->limit),
				       CACHE_LINE);
	}
	x->room_at[nodes] = at;
	x->out = scratch_get(2 * at + 1);
	x->in = x->out + at;
	return x->out;
}

/* ---- the first deposit, and what becomes of it ---- */

static size_t table_bytes(const struct coll_hier *t)
{
	return ((size_t)t->n + 1) * sizeof(uint32_t);
}

static void deposit_blocks(const struct exchange *x, uint64_t k)
{
	const struct coll_hier *t = x->t;
	size_t table = table_bytes(t), bytes = table;
	uint32_t gives = x->upto > x->limit && hier_bundles_give(x->a, x->limit, x->upto);
	for (int i = 0; i < t->n; i++)
		bytes += small_bytes(x, t->member[i]);
	char *room = cells_room(x->h, k, bytes), *at = room + table;
	for (int i = 0; i < t->n; i++) {
		struct coll_block b = outgoing(x, t->member[i]);
		uint32_t size = small_bytes(x, t->member[i]);
		memcpy(room + (size_t)i * sizeof(size), &size, sizeof(size));
		datatype_pack(b.type, b.buf, b.count, 0, at, size);
		at += size;
	}
	memcpy(room + table - sizeof(gives), &gives, sizeof(gives));
	cells_publish_ring(x->h, k);
}

/* Whether a local member has some for bundles. */
static bool gives(const struct exchange *x, uint64_t k, int member)
{
	struct coll_header *d = cells_deposit_of(x->h, member, k);
	uint32_t word;
	memcpy(&word, cells_payload(x->h, member, d) + table_bytes(x->t) - sizeof(word),
	       sizeof(word));
	return word;
}

/* A local member's blocks for members [first, end) of the map. */
static const char *deposited(const struct exchange *x, uint64_t k, int member, int first, int end,
			     const char **sizes, size_t *bytes)
{
	struct coll_header *d = cells_deposit_of(x->h, member, k);
	const char *table = cells_payload(x->h, member, d);
	*sizes = table + (size_t)first * sizeof(uint32_t);
	*bytes = sum(table, (size_t)first, (size_t)end);
	return table + table_bytes(x->t) + sum(table, 0, (size_t)first);
}

/* What goes to another node; returns how much that is. */
static size_t collect(const struct exchange *x, uint64_t k, int node, char *out)
{
	const struct coll_hier *t = x->t;
	size_t table = (size_t)hier_members(t, node) * sizeof(uint32_t), bytes;
	char *at = out + pair_count(x, node) * sizeof(uint32_t);
	for (int i = 0; i < x->h->n; i++) {
		const char *sizes, *blocks = deposited(x, k, i, t->start[node], t->start[node + 1],
						       &sizes, &bytes);
		memcpy(out + (size_t)i * table, sizes, table);
		memcpy(at, blocks, bytes);
		at += bytes;
	}
	return (size_t)(at - out);
}

static struct coll_block bytes_block(char *at, size_t bytes)
{
	return (struct coll_block){at, bytes, (struct datatype *)MPI_BYTE};
}

static void together_start(struct exchange *x, uint64_t k)
{
	const struct coll_hier *t = x->t;
	struct schedule *s = hier_train_next(&x->train, TOGETHER);
	for (int i = 1; s && i < t->nodes; i++) {
		int node = (t->node + i) % t->nodes;
		if (!handles(x, x->h->rank, node))
			continue;
		int peer = hier_member(t, node, handler(t, node, t->node));
		size_t at = x->room_at[node], room = x->room_at[node + 1] - at;
		schedule_recv(s, bytes_block(x->in + at, room), peer);
		schedule_send(s, bytes_block(x->out + at, collect(x, k, node, x->out + at)), peer);
	}
	hier_train_start(&x->train, TOGETHER, s);
}

static void take_block(struct exchange *x, int member, int rank, const char *at, size_t bytes)
{
	struct coll_block b = coll_recv_block(x->a, rank);
	if (bytes)
		note(x, cells_take(x->h, member, at, 0, bytes, b.buf, b.count, b.type));
}

static void take_neighbours(struct exchange *x, uint64_t k)
{
	const struct coll_hier *t = x->t;
	int own = t->index[x->a->comm->rank];
	x->given = gives(x, k, x->h->rank);
	for (int i = 1; i < x->h->n; i++) {
		int member = (x->h->rank + i) % x->h->n;
		x->given |= gives(x, k, member);
		const char *sizes;
		size_t bytes;
		const char *at = deposited(x, k, member, own, own + 1, &sizes, &bytes);
		take_block(x, member, hier_member(t, t->node, member), at, bytes);
	}
}

/* ---- the second deposit ---- */

static size_t came(const struct exchange *x, int node)
{
	const char *in = x->in + x->room_at[node];
	size_t pairs = pair_count(x, node);
	return pairs * sizeof(uint32_t) + sum(in, 0, pairs);
}

/* Handlers only. Others wait for it, also if nothing has come. */
static void deposit_nothing(const struct exchange *x, uint64_t k)
{
	cells_room(x->h, k, 0);
	cells_publish_ring(x->h, k);
}

static void deposit_others(const struct exchange *x, uint64_t k)
{
	int n = x->t->nodes, handled = 0;
	size_t bytes = 0;
	for (int node = 0; node < n; node++)
		if (handles(x, x->h->rank, node)) {
			bytes += came(x, node);
			handled++;
		}
	size_t table = (size_t)handled * sizeof(uint32_t), at = table;
	char *room = cells_room(x->h, k, table + bytes);
	for (int node = 0, i = 0; node < n; node++) {
		if (!handles(x, x->h->rank, node))
			continue;
		uint32_t where = (uint32_t)at;
		memcpy(room + (size_t)i++ * sizeof(where), &where, sizeof(where));
		memcpy(room + at, x->in + x->room_at[node], came(x, node));
		at += came(x, node);
	}
	cells_publish_ring(x->h, k);
}

/* A node's blocks for this member, out of those for all members of this node. */
static void take_node(struct exchange *x, int member, int node, const char *sizes)
{
	size_t here = (size_t)x->h->n, own = (size_t)x->h->rank;
	const char *at = sizes + pair_count(x, node) * sizeof(uint32_t);
	for (int i = 0; i < hier_members(x->t, node); i++) {
		size_t first = (size_t)i * here;
		size_t before = sum(sizes, first, first + own);
		take_block(x, member, hier_member(x->t, node, i), at + before,
			   sum(sizes, first + own, first + own + 1));
		at += sum(sizes, first, first + here);
	}
}

static void take_others(struct exchange *x, uint64_t k)
{
	for (int i = 0; i < x->h->n; i++) {
		int member = (x->h->rank + i) % x->h->n, handled = 0;
		for (int node = 0; node < x->t->nodes; node++) {
			uint32_t where;
			if (!handles(x, member, node))
				continue;
			struct coll_header *d = cells_deposit_of(x->h, member, k);
			if (!d->bytes) {
				note(x, MPI_ERR_OTHER);
				break;
			}
			const char *room = cells_payload(x->h, member, d);
			memcpy(&where, room + (size_t)handled++ * sizeof(where), sizeof(where));
			take_node(x, member, node, room + where);
		}
	}
}

/* ---- all of it ---- */

/* Larger blocks, when nobody waits in cells any more, where the network is looked after now and
 * then only: beside small ones they would take twice as long. */
static void straight(struct exchange *x)
{
	const struct coll_args *a = x->a;
	int rank = a->comm->rank;
	if (ragged(a)) {
		if (x->upto > x->limit)
			note(x, hier_bundles(x->h, a, x->limit, x->upto, x->given));
		struct schedule *s = hier_train_next(&x->train, STRAIGHT);
		if (s)
			plan_alltoall_above(s, a, x->upto);
		note(x, schedule_run(s));
	} else if (!x->in_place) {
		note(x, coll_block_copy(coll_recv_block(a, rank), coll_send_block(a, rank)));
	}
}

/* All blocks in bundles; one that is sent may be of another size than this member expects. */
static int bundled(struct coll_home *h, const struct coll_args *a)
{
	int rank = a->comm->rank;
	int rc = hier_bundles(h, a, 0, SIZE_MAX, true);
	int own = coll_block_copy(coll_recv_block(a, rank), coll_send_block(a, rank));
	return rc ? rc : own;
}

int hier_alltoall(struct coll_home *h, const struct coll_args *a)
{
	struct exchange x;
	if (in_bundles(a))
		return bundled(h, a);
	if (!exchange_init(&x, h, a)) {
		heap_free(x.room_at);
		return MPI_ERR_NO_MEM;
	}
	bool handling = x.room_at[x.t->nodes] > 0;
	uint64_t k = cells_begin(h);
	deposit_blocks(&x, k);
	if (handling)
		together_start(&x, k);
	take_neighbours(&x, k);
	cells_finish_ring(h, k);
	hier_tell(h);
	int rc = x.train.rc;
	x.train.rc = MPI_SUCCESS;
	hier_train_wait(&x.train, TOGETHER);
	k = cells_begin(h);
	if (handling)
		(x.train.rc ? deposit_nothing : deposit_others)(&x, k);
	note(&x, rc);
	take_others(&x, k);
	cells_finish_ring(h, k);
	hier_tell(h);
	straight(&x);
	scratch_put(x.out);
	heap_free(x.room_at);
	return x.train.rc;
}
