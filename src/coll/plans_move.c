/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of operations that move data. */
#include "coll/plans.h"

#include "coll/cells/cells.h"
#include "coll/hier/hier.h"
#include "coll/hier/join.h"

enum { RING_BYTES = 32768, RING_MEMBERS = 8, PEERS_A_ROUND = 32 };

static struct coll_block nothing(void)
{
	return (struct coll_block){NULL, 0, (struct datatype *)MPI_BYTE};
}

/* Dissemination: after round i everybody knows of 2^i others. */
void plan_barrier(struct schedule *s, const struct coll_args *a)
{
	int n = a->comm->size, rank = a->comm->rank;
	for (int far = 1; far < n; far *= 2) {
		schedule_send(s, nothing(), (rank + far) % n);
		schedule_recv(s, nothing(), (rank - far + n) % n);
		schedule_round(s);
	}
}

void plan_tree_down(struct schedule *s, int n, int rank, int root, struct coll_block b)
{
	int at = (rank - root + n) % n, mask = 1;
	while (mask < n && !(at & mask))
		mask *= 2;
	if (at) {
		schedule_recv(s, b, (at - mask + root) % n);
		schedule_round(s);
	}
	for (mask /= 2; mask; mask /= 2)
		if (at + mask < n)
			schedule_send(s, b, (at + mask + root) % n);
	schedule_round(s);
}

void plan_bcast(struct schedule *s, const struct coll_args *a)
{
	plan_tree_down(s, a->comm->size, a->comm->rank, a->root, coll_recv_one(a));
}

void plan_gather(struct schedule *s, const struct coll_args *a)
{
	int rank = a->comm->rank;
	if (rank != a->root) {
		schedule_send(s, coll_send_one(a), a->root);
		return;
	}
	if (!coll_in_place(a))
		schedule_copy(s, coll_recv_block(a, rank), coll_send_one(a));
	for (int i = 0; i < a->comm->size; i++)
		if (i != rank)
			schedule_recv(s, coll_recv_block(a, i), i);
}

void plan_scatter(struct schedule *s, const struct coll_args *a)
{
	int rank = a->comm->rank;
	if (rank != a->root) {
		schedule_recv(s, coll_recv_one(a), a->root);
		return;
	}
	if (a->rbuf != MPI_IN_PLACE)
		schedule_copy(s, coll_recv_one(a), coll_send_block(a, rank));
	for (int i = 0; i < a->comm->size; i++)
		if (i != rank)
			schedule_send(s, coll_send_block(a, i), i);
}

/* Each block goes once round the ring. */
static void allgather_ring(struct schedule *s, const struct coll_args *a)
{
	int n = a->comm->size, rank = a->comm->rank;
	for (int i = 0; i < n - 1; i++) {
		schedule_send(s, coll_recv_block(a, (rank - i + n) % n), (rank + 1) % n);
		schedule_recv(s, coll_recv_block(a, (rank - i - 1 + n) % n), (rank - 1 + n) % n);
		schedule_round(s);
	}
}

void plan_allgather(struct schedule *s, const struct coll_args *a)
{
	int n = a->comm->size, rank = a->comm->rank;
	struct coll_block own = coll_recv_block(a, rank);
	size_t total = 0;
	if (!coll_in_place(a))
		schedule_copy(s, own, coll_send_one(a));
	for (int i = 0; i < n; i++)
		total += coll_block_bytes(coll_recv_block(a, i));
	/* both forms are chosen by what everybody knows: the whole */
	if (n > RING_MEMBERS && total > (size_t)n * RING_BYTES) {
		allgather_ring(s, a);
		return;
	}
	for (int i = 1; i < n; i++)
		schedule_recv(s, coll_recv_block(a, (rank + i) % n), (rank + i) % n);
	for (int i = 1; i < n; i++)
		schedule_send(s, own, (rank - i + n) % n);
}

/* What goes to each member: blocks of the send buffer, or copies of those about to be overwritten
 * by blocks above so many bytes. */
static struct coll_block *outgoing(struct schedule *s, const struct coll_args *a, size_t above)
{
	struct datatype *byte = (struct datatype *)MPI_BYTE;
	int n = a->comm->size;
	struct coll_block *b = heap_alloc((size_t)n * sizeof(*b));
	for (int i = 0; b && i < n; i++) {
		if (!coll_in_place(a)) {
			b[i] = coll_send_block(a, i);
			continue;
		}
		struct coll_block from = coll_recv_block(a, i);
		size_t bytes = coll_block_bytes(from);
		b[i] = (struct coll_block){NULL, 0, byte};
		if (i == a->comm->rank || bytes <= above)
			continue;
		b[i].count = bytes;
		b[i].buf = schedule_temp(s, byte, bytes);
		if (b[i].buf)
			schedule_copy(s, b[i], from);
	}
	return b;
}

static bool neighbours(const struct comm *c, int peer)
{
	const struct coll_hier *t = c->coll->hier;
	return t && t->node_of[peer] == t->node;
}

/* To members at distances [from, to), in the middle of these first: so not all of a node begin with
 * the same one. What is read by a neighbour itself comes after what has a network before it. */
static void send_blocks(struct schedule *s, const struct coll_args *a, const struct coll_block *out,
			int from, int to, size_t above)
{
	int n = a->comm->size, m = to - from;
	for (int near = 0; near < 2; near++)
		for (int i = 0; i < m; i++) {
			int peer = (a->comm->rank + from + (i + m / 2) % m) % n;
			if (neighbours(a->comm, peer) == near &&
			    coll_block_bytes(out[peer]) > above)
				schedule_send(s, out[peer], peer);
		}
}

/* In pairs at growing distance, a number of them at once. Both ends of a pair know its size. */
void plan_alltoall_above(struct schedule *s, const struct coll_args *a, size_t above)
{
	int n = a->comm->size, rank = a->comm->rank;
	struct coll_block *out = outgoing(s, a, above);
	if (!out) {
		schedule_fail(s, MPI_ERR_NO_MEM);
		return;
	}
	if (!coll_in_place(a))
		schedule_copy(s, coll_recv_block(a, rank), out[rank]);
	for (int from = 1; from < n; from += PEERS_A_ROUND) {
		int to = from + PEERS_A_ROUND < n ? from + PEERS_A_ROUND : n;
		for (int i = from; i < to; i++) {
			int peer = (rank - i + n) % n;
			struct coll_block in = coll_recv_block(a, peer);
			if (coll_block_bytes(in) > above)
				schedule_recv(s, in, peer);
		}
		send_blocks(s, a, out, from, to, above);
		schedule_round(s);
	}
	heap_free(out);
}

void plan_alltoall(struct schedule *s, const struct coll_args *a)
{
	plan_alltoall_above(s, a, 0);
}
