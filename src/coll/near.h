/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of neighbours (MPI-3.1 7.6), and operations that are started again and again (MPI-4
 * 6.12). Both are schedules. */
#ifndef HALE_COLL_NEAR_H
#define HALE_COLL_NEAR_H

#include "coll/args.h"

/* What goes to whom, and comes from whom, in the order in which messages of one pair match. The
 * arrays are one piece of heap memory, which `to` begins. */
struct coll_near {
	struct comm *comm;
	int nsend, nrecv;
	int *to, *from;
	struct coll_block *send, *recv;
};
/* Room for so many; false: no memory. */
bool coll_near_alloc(struct coll_near *n, struct comm *c, int nsend, int nrecv);
void coll_near_free(struct coll_near *n);
/* Runs it; or starts it. The arrays stay the caller's. */
int coll_near_run(const struct coll_near *n);
int coll_near_start(const struct coll_near *n, struct request **req);

/* Persistent forms: an inactive request. Arrays of counts and so on must stay as long as it;
 * coll_near_init takes over n's arrays, also when it fails. The duplicate of its communicator
 * carries this operation's messages only, and is taken over likewise; NULL: the communicator itself
 * carries them. */
int coll_init_args(const struct coll_args *a, struct comm *duplicate, struct request **req);
int coll_near_init(struct coll_near *n, struct comm *duplicate, struct request **req);
/* Of a request that coll_init_args has made; NULL: it has not. */
const struct coll_args *coll_persistent_args(const struct request *r);

#endif
