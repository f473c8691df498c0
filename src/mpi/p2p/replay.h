/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests and waits whose result a program can't know by itself, in jobs with replicas. */
#ifndef HALE_MPI_P2P_REPLAY_H
#define HALE_MPI_P2P_REPLAY_H

#include "mpi/p2p/p2p.h"

enum { REPLAY_MAX = 256 }; /* requests that one call of Waitsome or Testsome completes at most */

/* Has r completed, have all? As the leader of this rank saw it; then they have here, too. */
bool replay_one(struct request *r);
bool replay_all(int count, const MPI_Request *requests);

/* Which ones have completed: their indices, at most max and REPLAY_MAX; how many, 0: none yet (only
 * without wait), MPI_UNDEFINED: there is none to wait for. */
int replay_some(int count, const MPI_Request *requests, bool wait, int max, int32_t *found);

#endif
