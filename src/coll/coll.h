/* SPDX-License-Identifier: BSD-3-Clause */
/* coll/: collective operations. Blocking small ones over slots in the node's shared segment, large
 * ones by single copy between the processes, nonblocking ones (and whatever has no shared form) by
 * schedules of messages in the collective context: cells/; over several nodes cells inside of them
 * and schedules between them: hier/. May call: match/ and below.
 *
 * Reduction order is a fixed binary tree over ranks, f(lo, hi) = f(lo, mid) op f(mid, hi) with
 * mid - lo the largest power of two below hi - lo, whatever the algorithm, arrival or placement:
 * the same bits always (the tree that recursive doubling makes).
 *
 * Arguments are checked above; sendbuf may be MPI_IN_PLACE where MPI allows it; communicators are
 * intracommunicators unless said otherwise. All return an MPI error class.
 */
#ifndef HALE_COLL_COLL_H
#define HALE_COLL_COLL_H

#include "match/match.h"
#include "object/op.h"

int coll_init(void); /* once, after match_init: registers with ckpt/ and progress */
/* All members of world have come to their end: nothing of collectives is on its way any more. */
/* stays: only those of world have, and the process goes on beside others: coll_settled. */
void coll_finish(struct comm *world, bool stays);
void coll_fini(void);
/* In place of coll_fini, where another program takes this process: waits until nobody reads what it
 * has deposited. Then, and in that program after coll_init: what goes on there
 * (channel/carry/carry.h). */
void coll_quit(void);
/* Have all members of the communicators that this process has freed done so, too? Until then they
 * may wait for its messages. */
bool coll_settled(void);
struct carry;
void coll_carry(struct carry *c);

/* A communicator is born (context agreed, group set), freed by its program, and dies, when all
 * members have freed it and nothing of it is under way. None of them waits for anybody. */
int coll_comm_create(struct comm *c);
void coll_comm_freed(struct comm *c);
void coll_comm_destroy(struct comm *c);

int coll_barrier(struct comm *c);
int coll_bcast(void *buf, size_t count, struct datatype *t, int root, struct comm *c);
int coll_reduce(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
		int root, struct comm *c);
int coll_allreduce(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
		   struct comm *c);
int coll_reduce_scatter(const void *sbuf, void *rbuf, const int *counts, struct datatype *t,
			struct op *op, struct comm *c);
int coll_reduce_scatter_block(const void *sbuf, void *rbuf, size_t count, struct datatype *t,
			      struct op *op, struct comm *c);
int coll_scan(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
	      struct comm *c);
int coll_exscan(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
		struct comm *c);
int coll_gather(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		struct datatype *rt, int root, struct comm *c);
int coll_gatherv(const void *sbuf, size_t scount, struct datatype *st, void *rbuf,
		 const int *rcounts, const int *displs, struct datatype *rt, int root,
		 struct comm *c);
int coll_scatter(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		 struct datatype *rt, int root, struct comm *c);
int coll_scatterv(const void *sbuf, const int *scounts, const int *displs, struct datatype *st,
		  void *rbuf, size_t rcount, struct datatype *rt, int root, struct comm *c);
int coll_allgather(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		   struct datatype *rt, struct comm *c);
int coll_allgatherv(const void *sbuf, size_t scount, struct datatype *st, void *rbuf,
		    const int *rcounts, const int *displs, struct datatype *rt, struct comm *c);
int coll_alltoall(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		  struct datatype *rt, struct comm *c);
int coll_alltoallv(const void *sbuf, const int *scounts, const int *sdispls, struct datatype *st,
		   void *rbuf, const int *rcounts, const int *rdispls, struct datatype *rt,
		   struct comm *c);
int coll_alltoallw(const void *sbuf, const int *scounts, const int *sdispls,
		   struct datatype *const *st, void *rbuf, const int *rcounts, const int *rdispls,
		   struct datatype *const *rt, struct comm *c);

/* Nonblocking: the same with `struct request **req`, by the schedule engine (coll/schedule.h). */
int coll_ibarrier(struct comm *c, struct request **req);
int coll_ibcast(void *buf, size_t count, struct datatype *t, int root, struct comm *c,
		struct request **req);
int coll_ireduce(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
		 int root, struct comm *c, struct request **req);
int coll_iallreduce(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
		    struct comm *c, struct request **req);
int coll_ireduce_scatter(const void *sbuf, void *rbuf, const int *counts, struct datatype *t,
			 struct op *op, struct comm *c, struct request **req);
int coll_ireduce_scatter_block(const void *sbuf, void *rbuf, size_t count, struct datatype *t,
			       struct op *op, struct comm *c, struct request **req);
int coll_iscan(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
	       struct comm *c, struct request **req);
int coll_iexscan(const void *sbuf, void *rbuf, size_t count, struct datatype *t, struct op *op,
		 struct comm *c, struct request **req);
int coll_igather(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		 struct datatype *rt, int root, struct comm *c, struct request **req);
int coll_igatherv(const void *sbuf, size_t scount, struct datatype *st, void *rbuf,
		  const int *rcounts, const int *displs, struct datatype *rt, int root,
		  struct comm *c, struct request **req);
int coll_iscatter(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		  struct datatype *rt, int root, struct comm *c, struct request **req);
int coll_iscatterv(const void *sbuf, const int *scounts, const int *displs, struct datatype *st,
		   void *rbuf, size_t rcount, struct datatype *rt, int root, struct comm *c,
		   struct request **req);
int coll_iallgather(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		    struct datatype *rt, struct comm *c, struct request **req);
int coll_iallgatherv(const void *sbuf, size_t scount, struct datatype *st, void *rbuf,
		     const int *rcounts, const int *displs, struct datatype *rt, struct comm *c,
		     struct request **req);
int coll_ialltoall(const void *sbuf, size_t scount, struct datatype *st, void *rbuf, size_t rcount,
		   struct datatype *rt, struct comm *c, struct request **req);
int coll_ialltoallv(const void *sbuf, const int *scounts, const int *sdispls, struct datatype *st,
		    void *rbuf, const int *rcounts, const int *rdispls, struct datatype *rt,
		    struct comm *c, struct request **req);
int coll_ialltoallw(const void *sbuf, const int *scounts, const int *sdispls,
		    struct datatype *const *st, void *rbuf, const int *rcounts, const int *rdispls,
		    struct datatype *const *rt, struct comm *c, struct request **req);

#endif
