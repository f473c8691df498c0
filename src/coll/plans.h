/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: which messages a collective operation is made of. Each fills the schedule for this
 * member. Reductions combine in the tree of coll.h. */
#ifndef HALE_COLL_PLANS_H
#define HALE_COLL_PLANS_H

#include "coll/schedule.h"

struct coll_near;

/* Fill a new schedule with the steps of the call, and return it (coll.c, near.c). NULL, no memory,
 * stays NULL. */
struct schedule *plan_of(struct schedule *s, const struct coll_args *a);
struct schedule *plan_near(struct schedule *s, const struct coll_near *n);

/* Communicators of one member: done at once. False: this is none. */
bool plan_alone(const struct coll_args *a, int *rc);

/* plans_move.c */
void plan_barrier(struct schedule *s, const struct coll_args *a);
void plan_bcast(struct schedule *s, const struct coll_args *a);
void plan_gather(struct schedule *s, const struct coll_args *a);
void plan_scatter(struct schedule *s, const struct coll_args *a);
void plan_allgather(struct schedule *s, const struct coll_args *a);
void plan_alltoall(struct schedule *s, const struct coll_args *a);
/* Blocks above so many bytes only, and this process's own. */
void plan_alltoall_above(struct schedule *s, const struct coll_args *a, size_t above);

/* plans_reduce.c */
void plan_reduce(struct schedule *s, const struct coll_args *a);
void plan_allreduce(struct schedule *s, const struct coll_args *a);
void plan_reduce_scatter(struct schedule *s, const struct coll_args *a);
void plan_scan(struct schedule *s, const struct coll_args *a);

/* plans_inter.c: between the two groups of an intercommunicator */
void plan_inter(struct schedule *s, const struct coll_args *a);

/* Pieces that several use, among n members of which this is rank. Binomial trees: a block from
 * root to all; and everybody's elements combined to rank 0, where they begin in acc (spoilt at
 * the others) and spare is of the same kind. Returns where the result is. */
void plan_tree_down(struct schedule *s, int n, int rank, int root, struct coll_block b);
char *plan_tree_up(struct schedule *s, int n, int rank, struct op *op, struct coll_block acc,
		   char *spare);

#endif
