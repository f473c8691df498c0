/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchical collectives: blocking operations of a communicator whose members live on several
 * nodes. Inside a node its members use their shared cells; between nodes one member of each, or for
 * large vectors several, each for its own slice, use schedules of messages (docs/collectives.md,
 * 'Over shared memory and network').
 *
 * An operation is a row of operations over cells and of schedules, each with its own rules at a
 * checkpoint. Who is on which node is what members have agreed on in join.c, not what is so now:
 * until they agree anew all go on with that.
 */
#ifndef HALE_COLL_HIER_H
#define HALE_COLL_HIER_H

#include "coll/cells/cells.h"
#include "coll/schedule.h"

/* A piece of the tree of coll.h: the largest subtrees whose members all live on one node. */
struct hier_piece {
	int lo, hi; /* ranks */
	int node;
};

/* Who lives where, as agreed. Nodes are numbered in the order of their lowest members. */
struct coll_hier {
	int n, nodes, node; /* members, nodes, this process's */
	int least, most;    /* members of the smallest node, and of the largest */
	int *node_of;	    /* [n] */
	int *member;	    /* [n] ranks, node by node, rising in each */
	int *index;	    /* [n] where a rank is in member */
	int *start;	    /* [nodes + 1] a node's first one in member */
	struct hier_piece *piece;
	int pieces;
};

/* hier_map.c. place[i]: the same number for members of one node. NULL: no memory. */
struct coll_hier *hier_create(const uint64_t *place, int n, int rank);
void hier_destroy(struct coll_hier *t); /* NULL is fine */

/* Member i of a node, and a rank's number among the members of its node. */
static inline int hier_member(const struct coll_hier *t, int node, int i)
{
	return t->member[t->start[node] + i];
}
static inline int hier_local(const struct coll_hier *t, int rank)
{
	return t->index[rank] - t->start[t->node_of[rank]];
}
static inline int hier_members(const struct coll_hier *t, int node)
{
	return t->start[node + 1] - t->start[node];
}

/* Do nodes combine a third of the tree at home? Where ranks are dealt out to nodes in turn they
 * combine nothing. */
static inline bool hier_few_pieces(const struct coll_hier *t)
{
	return t->pieces * 3 <= t->n * 2;
}

/* Who acts for its nodes in an operation: of each node one member. */
struct hier_team {
	const struct coll_hier *map;
	int root, slice; /* the root (-1: none) stands for its own node; else member slice does */
};
static inline int hier_acting(const struct hier_team *team, int node)
{
	if (team->root >= 0 && team->map->node_of[team->root] == node)
		return team->root;
	return hier_member(team->map, node, team->slice);
}

/* Who has a member's block on a node in operations in which each member has one: there members take
 * turns, so that all of them send and receive. */
static inline int hier_holder(const struct coll_hier *t, int node, int rank)
{
	return hier_member(t, node, hier_local(t, rank) % hier_members(t, node));
}

/* Does the call go this way? The same answer for all members. */
bool hier_suits(const struct coll_home *h, const struct coll_args *a);
int hier_run(struct coll_home *h, const struct coll_args *a);

/* hier_reduce.c: reduce, allreduce, reduce_scatter */
bool hier_reduce_suits(const struct coll_args *a);
int hier_reduce(struct coll_home *h, const struct coll_args *a);

/* hier_scan.c */
bool hier_scan_suits(const struct coll_args *a);
int hier_scan(struct coll_home *h, const struct coll_args *a);

/* hier_root.c: gather and scatter, also of blocks of which only the root knows all sizes */
bool hier_root_suits(const struct coll_args *a);
int hier_gather(struct coll_home *h, const struct coll_args *a);
int hier_scatter(struct coll_home *h, const struct coll_args *a);

/* hier_alltoall.c */
bool hier_alltoall_suits(const struct coll_home *h, const struct coll_args *a);
int hier_alltoall(struct coll_home *h, const struct coll_args *a);

/* hier_bundles.c: alltoall of blocks of more than `above` and at most `upto` bytes, but for each
 * member's own. given: some member of this node has one for another member (hier_bundles_give): the
 * same for all of them. hier_bundles_upto: the largest block that may go this way; 0: none. */
size_t hier_bundles_upto(const struct coll_home *h, const struct coll_args *a);
bool hier_bundles_give(const struct coll_args *a, size_t above, size_t upto);
int hier_bundles(struct coll_home *h, const struct coll_args *a, size_t above, size_t upto,
		 bool given);

/* hier_plans.c: among those who act. value[p] is where piece p of the tree is: its elements if it
 * lives on this node, else room. The result goes to out (NULL: not here), which may be where the
 * last piece is. */
void hier_plan_reduce(struct schedule *s, const struct hier_team *team, struct op *op,
		      const struct coll_block *value, struct coll_block out, int root);
void hier_plan_bcast(struct schedule *s, const struct hier_team *team, int from,
		     struct coll_block b);
void hier_plan_barrier(struct schedule *s, const struct hier_team *team);

/* A schedule among some members: every member counts it. Two tags are its own. */
static inline int hier_tag(struct comm *c)
{
	return schedule_tag_pair(c);
}

/* A row of schedules of which two may be under way, under the two tags in turn. Each is waited for
 * before the next but one is started; waiting for one that wasn't started is fine. */
struct hier_train {
	struct comm *comm;
	int tag;
	struct request *req[2];
	int rc; /* the first error */
};
static inline struct schedule *hier_train_next(const struct hier_train *t, int i)
{
	return schedule_create_tagged(t->comm, schedule_tag_of(t->tag, i & 1));
}
void hier_train_start(struct hier_train *t, int i, struct schedule *s); /* NULL: no memory */
void hier_train_wait(struct hier_train *t, int i);

/* A row's next step may be a schedule, which tells nothing: what mirrors have to be told of. */
static inline void hier_tell(struct coll_home *h)
{
	if (UNLIKELY(h->mirror))
		cells_mirror_tell(h);
}

#endif
