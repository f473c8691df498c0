/* SPDX-License-Identifier: BSD-3-Clause */
/* Barrier, and operations that move data, over nodes. */
#include "coll/hier/hier.h"

#include "coll/hier/join.h"
#include "coll/cells/scratch.h"

/* Broadcasts travel in chunks, so that the network and the nodes' memory work at the same time.
 * Blocks that all gather are handed in and out by one member of a node as long as they are small:
 * then messages cost, and not what they carry. */
enum { CHUNK = 262144, BLOCK_BYTES = 8192, RING_NODES = 8 };

static struct datatype *bytes_type(void)
{
	return (struct datatype *)MPI_BYTE;
}

static struct coll_block bytes_block(char *at, size_t bytes)
{
	return (struct coll_block){at, bytes, bytes_type()};
}

static int first_error(int a, int b)
{
	return a ? a : b;
}

static const struct coll_hier *map_of(const struct coll_args *a)
{
	return a->comm->coll->hier;
}

/* ---- steps inside the node; nothing to do for a member that is alone ---- */

static int down(struct coll_home *h, const struct coll_args *a, int from, struct coll_block b)
{
	struct coll_args args = {.kind = COLL_BCAST,
				 .root = from,
				 .comm = a->comm,
				 .rbuf = b.buf,
				 .rcount = b.count,
				 .rtype = b.type};
	int rc = h->n == 1 ? MPI_SUCCESS : cells_bcast(h, &args);
	hier_tell(h);
	return rc;
}

/* Blocks of members of this node, bytes each, one after another at to. */
static int collect(struct coll_home *h, const struct coll_args *a, int to, struct coll_block own,
		   char *all, size_t bytes)
{
	struct coll_args args = {.kind = COLL_GATHER,
				 .root = to,
				 .comm = a->comm,
				 .sbuf = own.buf,
				 .scount = own.count,
				 .stype = own.type,
				 .rbuf = all,
				 .rcount = bytes,
				 .rtype = bytes_type()};
	int rc = cells_gather(h, &args);
	hier_tell(h);
	return rc;
}

/* ---- barrier ---- */

static int barrier(struct coll_home *h, const struct coll_args *a)
{
	struct hier_team team = {map_of(a), -1, 0};
	int tag = hier_tag(a->comm);
	struct coll_block nothing = bytes_block(NULL, 0);
	int rc = collect(h, a, 0, nothing, NULL, 0);
	if (h->rank == 0) {
		struct schedule *s = schedule_create_tagged(a->comm, tag);
		if (s)
			hier_plan_barrier(s, &team);
		rc = first_error(rc, schedule_run(s));
	}
	return first_error(rc, down(h, a, 0, nothing));
}

/* ---- broadcast ---- */

void hier_train_start(struct hier_train *t, int i, struct schedule *s)
{
	int rc = schedule_start(s, &t->req[i & 1]);
	if (rc)
		t->req[i & 1] = NULL;
	t->rc = first_error(t->rc, rc);
}

void hier_train_wait(struct hier_train *t, int i)
{
	struct request *r = t->req[i & 1];
	if (!r)
		return;
	match_wait(r);
	t->rc = first_error(t->rc, r->status.MPI_ERROR);
	match_request_free(r);
	t->req[i & 1] = NULL;
}

static struct coll_block chunk_of(struct coll_block b, int i)
{
	size_t at = (size_t)i * CHUNK;
	return bytes_block(b.buf + at, b.count - at < CHUNK ? b.count - at : CHUNK);
}

static void chunk_start(struct hier_train *t, const struct coll_args *a,
			const struct hier_team *team, int i, struct coll_block b)
{
	struct schedule *s = hier_train_next(t, i);
	if (s)
		hier_plan_bcast(s, team, team->map->node_of[a->root], b);
	hier_train_start(t, i, s);
}

/* Packed bytes, from the root to all: the next chunk is on its way between nodes while the last one
 * goes round the node. */
static int bcast_packed(struct coll_home *h, const struct coll_args *a,
			const struct hier_team *team, int tag, struct coll_block b)
{
	const struct coll_hier *t = team->map;
	int acting = hier_acting(team, t->node), from = hier_local(t, acting);
	bool acts = acting == a->comm->rank, root = a->root == a->comm->rank;
	int chunks = b.count ? (int)((b.count + CHUNK - 1) / CHUNK) : 1, rc = MPI_SUCCESS;
	struct hier_train train = {.comm = a->comm, .tag = tag};
	if (acts)
		chunk_start(&train, a, team, 0, chunk_of(b, 0));
	for (int i = 0; i < chunks; i++) {
		/* who has a chunk still to come starts the next one before it passes this one on */
		if (acts && !root)
			hier_train_wait(&train, i);
		if (acts && i + 1 < chunks) {
			if (root)
				hier_train_wait(&train, i - 1);
			chunk_start(&train, a, team, i + 1, chunk_of(b, i + 1));
		}
		rc = first_error(rc, down(h, a, from, chunk_of(b, i)));
	}
	if (acts) {
		hier_train_wait(&train, chunks - 2);
		hier_train_wait(&train, chunks - 1);
	}
	return first_error(train.rc, rc);
}

/* One run of bytes, or a packed copy of it. */
static int bcast(struct coll_home *h, const struct coll_args *a)
{
	struct hier_team team = {map_of(a), a->root, 0};
	int tag = hier_tag(a->comm);
	struct coll_block b = coll_recv_one(a);
	size_t bytes = coll_block_bytes(b), run;
	char *p = bytes ? datatype_run(b.type, b.buf, b.count, &run) : NULL, *packed = NULL;
	if (bytes && !p) {
		p = packed = scratch_get(bytes);
		if (!p)
			return MPI_ERR_NO_MEM;
		if (a->root == a->comm->rank)
			datatype_pack(b.type, b.buf, b.count, 0, p, bytes);
	}
	int rc = bcast_packed(h, a, &team, tag, bytes_block(p, bytes));
	if (packed && a->root != a->comm->rank)
		datatype_unpack(b.type, b.buf, b.count, 0, packed, bytes);
	scratch_put(packed);
	return rc;
}

/* ---- blocks of all to all ---- */

static size_t all_bytes(const struct coll_args *a)
{
	size_t total = 0;
	for (int i = 0; i < a->comm->size; i++)
		total += coll_block_bytes(coll_recv_block(a, i));
	return total;
}

/* Packed blocks, node by node: where those of a node begin; at[nodes] is the end. */
static void node_offsets(const struct coll_args *a, size_t *at)
{
	const struct coll_hier *t = map_of(a);
	size_t sum = 0;
	for (int node = 0; node < t->nodes; node++) {
		at[node] = sum;
		for (int i = 0; i < hier_members(t, node); i++)
			sum += coll_block_bytes(coll_recv_block(a, hier_member(t, node, i)));
	}
	at[t->nodes] = sum;
}

static struct coll_block node_block(char *all, const size_t *at, int node)
{
	return bytes_block(all + at[node], at[node + 1] - at[node]);
}

/* Each node's blocks to all others, at once, or (many nodes) round a ring. */
static int leaders_allgather(const struct coll_args *a, const struct hier_team *team, int tag,
			     char *all, const size_t *at)
{
	const struct coll_hier *t = team->map;
	struct schedule *s = schedule_create_tagged(a->comm, tag);
	int n = t->nodes, me = t->node;
	for (int i = 1; s && i < n; i++) {
		bool ring = n > RING_NODES;
		int to = ring ? (me + 1) % n : (me + i) % n;
		int from = ring ? (me - 1 + n) % n : (me - i + n) % n;
		int given = ring ? (me - i + 1 + n) % n : me;
		schedule_recv(s, node_block(all, at, (me - i + n) % n), hier_acting(team, from));
		schedule_send(s, node_block(all, at, given), hier_acting(team, to));
		if (ring)
			schedule_round(s);
	}
	return schedule_run(s);
}

/* What an allgather needs room for. */
struct gathered {
	char *all;	      /* packed blocks, node by node */
	size_t bytes;	      /* of all */
	size_t *at;	      /* [nodes + 1] where a node's begin */
	int *counts, *displs; /* [members of this node] */
};

/* False: no memory. */
static bool gathered_init(struct gathered *g, const struct coll_args *a)
{
	const struct coll_hier *t = map_of(a);
	size_t here = (size_t)hier_members(t, t->node), nodes = (size_t)t->nodes;
	g->bytes = all_bytes(a);
	g->at = scratch_get((nodes + 1) * sizeof(*g->at) + 2 * here * sizeof(int) + g->bytes);
	if (!g->at)
		return false;
	g->counts = (int *)(g->at + nodes + 1);
	g->displs = g->counts + here;
	g->all = (char *)(g->displs + here);
	node_offsets(a, g->at);
	for (int i = 0, at = 0; i < (int)here; i++) {
		struct coll_block b = coll_recv_block(a, hier_member(t, t->node, i));
		g->counts[i] = (int)coll_block_bytes(b);
		g->displs[i] = at;
		at += g->counts[i];
	}
	return true;
}

/* The members' blocks to the leader: each deposits its own, whatever its size. */
static int collect_ragged(struct coll_home *h, const struct coll_args *a, struct gathered *g)
{
	struct coll_block own = coll_send_one(a);
	if (coll_in_place(a))
		own = coll_recv_block(a, a->comm->rank);
	struct coll_args args = {.kind = COLL_GATHER,
				 .comm = a->comm,
				 .sbuf = own.buf,
				 .scount = own.count,
				 .stype = own.type,
				 .rbuf = g->all + g->at[map_of(a)->node],
				 .rcounts = g->counts,
				 .rdispls = g->displs,
				 .rtype = bytes_type()};
	int rc = cells_gather(h, &args);
	hier_tell(h);
	return rc;
}

/* By the leaders, all blocks together. */
static int allgather_small(struct coll_home *h, const struct coll_args *a)
{
	const struct coll_hier *t = map_of(a);
	struct hier_team team = {t, -1, 0};
	int tag = hier_tag(a->comm), rc;
	struct gathered g;
	if (!gathered_init(&g, a))
		return MPI_ERR_NO_MEM;
	rc = collect_ragged(h, a, &g);
	if (h->rank == 0)
		rc = first_error(rc, leaders_allgather(a, &team, tag, g.all, g.at));
	rc = first_error(rc, down(h, a, 0, bytes_block(g.all, g.bytes)));
	for (int i = 0, own; i < t->n; i++) {
		struct coll_block to = coll_recv_block(a, t->member[i]);
		struct coll_block from = bytes_block(g.all, coll_block_bytes(to));
		g.all += from.count;
		own = t->member[i] == a->comm->rank;
		if (!(coll_in_place(a) && own))
			rc = first_error(rc, coll_block_copy(to, from));
	}
	scratch_put(g.at);
	return rc;
}

/* Blocks of a node are passed on from node to node round a ring, each by one member of a node,
 * into its own buffer; while the next node's are on their way it hands it to the others. */
static void pass_on(struct hier_train *train, const struct coll_args *a, int i)
{
	const struct coll_hier *t = map_of(a);
	struct schedule *s = hier_train_next(train, i);
	int n = t->nodes, me = a->comm->rank, next = (t->node + 1) % n;
	int given = (t->node - i + n) % n, last = (t->node - 1 + n) % n;
	for (int m = 0; s && m < hier_members(t, given); m++) {
		int rank = hier_member(t, given, m);
		if (hier_holder(t, t->node, rank) == me)
			schedule_send(s, coll_recv_block(a, rank), hier_holder(t, next, rank));
	}
	int wanted = (given - 1 + n) % n;
	for (int m = 0; s && m < hier_members(t, wanted); m++) {
		int rank = hier_member(t, wanted, m);
		if (hier_holder(t, t->node, rank) == me)
			schedule_recv(s, coll_recv_block(a, rank), hier_holder(t, last, rank));
	}
	hier_train_start(train, i, s);
}

static int hand_round(struct coll_home *h, const struct coll_args *a, int node)
{
	const struct coll_hier *t = map_of(a);
	int rc = MPI_SUCCESS;
	for (int m = 0; m < hier_members(t, node); m++) {
		int rank = hier_member(t, node, m);
		struct coll_block b = coll_recv_block(a, rank);
		int holder = hier_local(t, hier_holder(t, t->node, rank));
		if (coll_block_bytes(b))
			rc = first_error(rc, down(h, a, holder, b));
	}
	return rc;
}

static int allgather_large(struct coll_home *h, const struct coll_args *a)
{
	const struct coll_hier *t = map_of(a);
	struct hier_train train = {.comm = a->comm, .tag = hier_tag(a->comm)};
	int rc = MPI_SUCCESS;
	if (!coll_in_place(a))
		rc = coll_block_copy(coll_recv_block(a, a->comm->rank), coll_send_one(a));
	for (int i = 0; i < t->nodes; i++) {
		if (i + 1 < t->nodes)
			pass_on(&train, a, i);
		rc = first_error(rc, hand_round(h, a, (t->node - i + t->nodes) % t->nodes));
		hier_train_wait(&train, i);
	}
	return first_error(rc, train.rc);
}

/* Do the leaders handle all blocks together? */
static bool gathers_small(const struct coll_args *a)
{
	return all_bytes(a) / (size_t)a->comm->size <= BLOCK_BYTES;
}

/* Without single copies, every block has to fit its owner's cell. */
static bool blocks_fit(const struct coll_home *h, const struct coll_args *a)
{
	for (int i = 0; !h->reads && i < a->comm->size; i++)
		if (coll_block_bytes(coll_recv_block(a, i)) > coll_inline_max)
			return false;
	return true;
}

/* ---- which ---- */

bool hier_suits(const struct coll_home *h, const struct coll_args *a)
{
	switch (a->kind) {
	case COLL_BARRIER:
	case COLL_BCAST:
		return true;
	case COLL_REDUCE:
	case COLL_ALLREDUCE:
	case COLL_REDUCE_SCATTER:
		return hier_reduce_suits(a);
	case COLL_ALLGATHER:
		return !gathers_small(a) || blocks_fit(h, a);
	case COLL_GATHER:
	case COLL_SCATTER:
		return hier_root_suits(a);
	case COLL_ALLTOALL:
		return hier_alltoall_suits(h, a);
	default:
		return hier_scan_suits(a);
	}
}

int hier_run(struct coll_home *h, const struct coll_args *a)
{
	switch (a->kind) {
	case COLL_BARRIER:
		return barrier(h, a);
	case COLL_BCAST:
		return bcast(h, a);
	case COLL_ALLGATHER:
		return gathers_small(a) ? allgather_small(h, a) : allgather_large(h, a);
	case COLL_GATHER:
		return hier_gather(h, a);
	case COLL_SCATTER:
		return hier_scatter(h, a);
	case COLL_ALLTOALL:
		return hier_alltoall(h, a);
	case COLL_SCAN:
	case COLL_EXSCAN:
		return hier_scan(h, a);
	default:
		return hier_reduce(h, a);
	}
}
