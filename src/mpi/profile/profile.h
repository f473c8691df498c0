/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/profile/: counts and times every MPI call, always. API_ENTER and api_leave (mpi/api.h) are
 * the only places that call it; what is counted how is said in node/meter.h, what comes of it in
 * docs/advisor.md. */
#ifndef HALE_MPI_PROFILE_PROFILE_H
#define HALE_MPI_PROFILE_PROFILE_H

#include "base/base.h"
#include "coll/args.h"
#include "node/meter.h"
#include "match/call.h"

extern struct rank_meter *profile_meter; /* this rank's; valid from MPI_Init on */

int profile_init(void);	  /* once, when the segment is there; registers with ckpt/ */
void profile_begin(void); /* the end of MPI_Init */
void profile_end(void);	  /* the beginning of MPI_Finalize */
void profile_sample(void) __attribute__((cold));
void profile_note(void) __attribute__((cold));

/* The class of a function; folded by the compiler, as names are literals. */
static inline __attribute__((always_inline)) enum meter_call profile_class(const char *name)
{
#define IS(x) (__builtin_strcmp(name, "MPI_" x) == 0)
	if (IS("Send") || IS("Bsend") || IS("Ssend") || IS("Rsend"))
		return METER_SEND;
	if (IS("Recv") || IS("Mrecv"))
		return METER_RECV;
	if (IS("Isend") || IS("Ibsend") || IS("Issend") || IS("Irsend") || IS("Send_init") ||
	    IS("Bsend_init") || IS("Ssend_init") || IS("Rsend_init"))
		return METER_ISEND;
	if (IS("Irecv") || IS("Imrecv") || IS("Recv_init"))
		return METER_IRECV;
	if (IS("Sendrecv") || IS("Sendrecv_replace"))
		return METER_SENDRECV;
	if (IS("Wait") || IS("Waitall") || IS("Waitany") || IS("Waitsome"))
		return METER_WAIT;
	if (IS("Test") || IS("Testall") || IS("Testany") || IS("Testsome") ||
	    IS("Request_get_status"))
		return METER_TEST;
	if (IS("Probe") || IS("Iprobe") || IS("Mprobe") || IS("Improbe"))
		return METER_PROBE;
	if (IS("Start") || IS("Startall"))
		return METER_START;
	if (IS("Barrier") || IS("Bcast") || IS("Gather") || IS("Gatherv") || IS("Scatter") ||
	    IS("Scatterv") || IS("Allgather") || IS("Allgatherv") || IS("Alltoall") ||
	    IS("Alltoallv") || IS("Alltoallw") || IS("Reduce") || IS("Allreduce") ||
	    IS("Reduce_scatter") || IS("Reduce_scatter_block") || IS("Scan") || IS("Exscan"))
		return METER_COLLECTIVE;
	if (IS("Ibarrier") || IS("Ibcast") || IS("Igather") || IS("Igatherv") || IS("Iscatter") ||
	    IS("Iscatterv") || IS("Iallgather") || IS("Iallgatherv") || IS("Ialltoall") ||
	    IS("Ialltoallv") || IS("Ialltoallw") || IS("Ireduce") || IS("Iallreduce") ||
	    IS("Ireduce_scatter") || IS("Ireduce_scatter_block") || IS("Iscan") || IS("Iexscan"))
		return METER_COLLECTIVE;
#undef IS
	return METER_OTHER;
}

/* Inside the guard. */
static inline __attribute__((always_inline)) void profile_enter(enum meter_call what,
							       const char *name)
{
	match_call.what = what;
	match_call.function = name;
	if (UNLIKELY(METER_COUNT_DOWN(profile_meter->left[what])))
		profile_sample();
}

/* Still inside the guard. */
static inline void profile_leave(void)
{
	if (UNLIKELY(match_call.noted))
		profile_note();
}

/* A collective of the program, before it begins. */
void profile_collective(const struct coll_args *a);

#endif
