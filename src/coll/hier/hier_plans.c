/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedules between nodes, among those who act for them. */
#include "coll/hier/hier.h"

/* Up to so many nodes everybody sends to everybody: one latency. Beyond that, and for vectors, work
 * and messages are shared out. */
enum { DIRECT_NODES = 8, DIRECT_BYTES = 65536, PART_BYTES = 4096 };

static int me(const struct hier_team *team)
{
	return team->map->node;
}

static struct coll_block slice(struct coll_block b, size_t first, size_t count)
{
	return (struct coll_block){b.buf + (ptrdiff_t)first * b.type->extent, count, b.type};
}

void hier_plan_barrier(struct schedule *s, const struct hier_team *team)
{
	int n = team->map->nodes;
	struct coll_block nothing = {NULL, 0, (struct datatype *)MPI_BYTE};
	for (int far = 1; far < n; far *= 2) {
		schedule_send(s, nothing, hier_acting(team, (me(team) + far) % n));
		schedule_recv(s, nothing, hier_acting(team, (me(team) - far + n) % n));
		schedule_round(s);
	}
}

/* A binomial tree from one node. */
void hier_plan_bcast(struct schedule *s, const struct hier_team *team, int from,
		     struct coll_block b)
{
	int n = team->map->nodes, at = (me(team) - from + n) % n, mask = 1;
	while (mask < n && !(at & mask))
		mask *= 2;
	if (at) {
		schedule_recv(s, b, hier_acting(team, (at - mask + from) % n));
		schedule_round(s);
	}
	for (mask /= 2; mask; mask /= 2)
		if (at + mask < n)
			schedule_send(s, b, hier_acting(team, (at + mask + from) % n));
	schedule_round(s);
}

/* ---- reductions ---- */

struct reduction {
	struct schedule *s;
	const struct hier_team *team;
	struct op *op;
	const struct coll_block *value;
	size_t first, count; /* the elements at work */
	int at;		     /* the next piece */
};

/* A subtree's value, and the node that has it. */
struct hier_plans_part {
	struct coll_block block;
	int node;
};

static struct coll_block value(const struct reduction *r, int piece)
{
	return slice(r->value[piece], r->first, r->count);
}

static bool is_piece(const struct reduction *r, int lo, int hi)
{
	const struct hier_piece *p = &r->team->map->piece[r->at];
	return p->lo == lo && p->hi == hi;
}

/* The rest of the tree, all pieces being here; the result is where the last one was. */
static struct coll_block combine(struct reduction *r, int lo, int hi)
{
	if (is_piece(r, lo, hi))
		return value(r, r->at++);
	int mid = lo + coll_split(hi - lo);
	struct coll_block left = combine(r, lo, mid), right = combine(r, mid, hi);
	schedule_reduce(r->s, r->op, left.buf, right);
	return right;
}

/* The rest of the tree, each subtree on the node of its left operand. Those who take part meet in
 * the same order everywhere. */
static struct hier_plans_part climb(struct reduction *r, int lo, int hi)
{
	const struct hier_piece *p = &r->team->map->piece[r->at];
	if (is_piece(r, lo, hi))
		return (struct hier_plans_part){value(r, r->at++), p->node};
	int mid = lo + coll_split(hi - lo);
	struct hier_plans_part left = climb(r, lo, mid), right = climb(r, mid, hi);
	if (me(r->team) == right.node && right.node != left.node) {
		schedule_send(r->s, right.block, hier_acting(r->team, left.node));
		schedule_round(r->s);
	}
	if (me(r->team) != left.node)
		return left;
	if (right.node != left.node) { /* its block is room, here */
		schedule_recv(r->s, right.block, hier_acting(r->team, right.node));
		schedule_round(r->s);
	}
	schedule_reduce(r->s, r->op, left.block.buf, right.block);
	return (struct hier_plans_part){right.block, left.node};
}

static void send_own(const struct reduction *r, int node)
{
	const struct coll_hier *map = r->team->map;
	for (int p = 0; p < map->pieces; p++)
		if (map->piece[p].node == map->node)
			schedule_send(r->s, value(r, p), hier_acting(r->team, node));
}

static void recv_others(const struct reduction *r)
{
	const struct coll_hier *map = r->team->map;
	for (int p = 0; p < map->pieces; p++)
		if (map->piece[p].node != map->node)
			schedule_recv(r->s, value(r, p), hier_acting(r->team, map->piece[p].node));
}

/* The last piece may have been where the result is wanted. */
static void deliver(const struct reduction *r, struct coll_block out, struct coll_block result)
{
	if (out.buf != result.buf)
		schedule_copy(r->s, out, result);
}

/* Those who want the result get all pieces. */
static void direct(struct reduction *r, struct coll_block out, int root)
{
	const struct coll_hier *map = r->team->map;
	int to = root < 0 ? -1 : map->node_of[root];
	if (to < 0 || to == map->node)
		recv_others(r);
	for (int i = 1; i < map->nodes; i++) {
		int node = (map->node + i) % map->nodes;
		if (to < 0 || to == node)
			send_own(r, node);
	}
	schedule_round(r->s);
	if (to < 0 || to == map->node)
		deliver(r, out, combine(r, 0, map->n));
}

static void up_and_down(struct reduction *r, struct coll_block out, int root)
{
	const struct coll_hier *map = r->team->map;
	struct hier_plans_part top = climb(r, 0, map->n);
	int to = root < 0 ? top.node : map->node_of[root];
	if (top.node == map->node && to == map->node)
		deliver(r, out, top.block);
	else if (top.node == map->node)
		schedule_send(r->s, top.block, hier_acting(r->team, to));
	else if (to == map->node)
		schedule_recv(r->s, out, hier_acting(r->team, top.node));
	if (root < 0)
		hier_plan_bcast(r->s, r->team, to, out);
}

/* Each node combines a part of the vector. */
static void by_parts(struct reduction *r, struct coll_block out, int root)
{
	const struct coll_hier *map = r->team->map;
	size_t count = r->count;
	int n = map->nodes, to = root < 0 ? -1 : map->node_of[root];
	size_t first = coll_part(count, n, map->node);
	size_t mine = coll_part(count, n, map->node + 1) - first;
	r->first = first;
	r->count = mine;
	recv_others(r);
	for (int i = 1; i < n; i++) {
		int node = (map->node + i) % n;
		r->first = coll_part(count, n, node);
		r->count = coll_part(count, n, node + 1) - r->first;
		send_own(r, node);
	}
	schedule_round(r->s);
	r->first = first;
	r->count = mine;
	struct coll_block result = combine(r, 0, map->n);
	for (int i = 1; i < n; i++) {
		int node = (map->node + i) % n;
		size_t theirs = coll_part(count, n, node);
		if (to < 0 || to == map->node)
			schedule_recv(r->s,
				      slice(out, theirs, coll_part(count, n, node + 1) - theirs),
				      hier_acting(r->team, node));
		if (to < 0 || to == node)
			schedule_send(r->s, result, hier_acting(r->team, node));
	}
	if (to < 0 || to == map->node)
		deliver(r, slice(out, first, mine), result);
}

void hier_plan_reduce(struct schedule *s, const struct hier_team *team, struct op *op,
		      const struct coll_block *value, struct coll_block out, int root)
{
	const struct coll_hier *map = team->map;
	struct reduction r = {s, team, op, value, 0, value[0].count, 0};
	size_t span = coll_span(value[0].type, r.count), all = span * (size_t)map->pieces;
	bool parts = span >= PART_BYTES * (size_t)map->nodes && r.count >= (size_t)map->nodes;
	/* two nodes of which each has much to send share the combining, too */
	bool share = parts && map->pieces > 2 * map->nodes;
	if ((map->nodes == 2 && !share) || (map->nodes <= DIRECT_NODES && all <= DIRECT_BYTES))
		direct(&r, out, root);
	else if (parts)
		by_parts(&r, out, root);
	else
		up_and_down(&r, out, root);
}
