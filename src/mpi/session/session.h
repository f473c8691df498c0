/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/session/: MPI without MPI_Init (MPI-4.0 11.3). A session opens the library (mpi/env/env.h says
 * who else holds it open), names sets of processes, and makes communicators of them. May call:
 * mpi/comm, mpi/env, mpi/p2p and all below.
 *
 * Process sets: mpi://WORLD, the processes of MPI_COMM_WORLD, and mpi://SELF. Communicators made of
 * groups agree on their context by messages in the hidden communicator of all processes of the job,
 * under a tag that comes from the program's string. */
#ifndef HALE_MPI_SESSION_SESSION_H
#define HALE_MPI_SESSION_SESSION_H

#include "mpi/comm/comm.h"
#include "mpi/mpi4.h"
#include "object/session.h"

static inline struct mpi_session *session_of(MPI_Session h)
{
	return (struct mpi_session *)h;
}
static inline MPI_Session session_handle(struct mpi_session *s)
{
	return (MPI_Session)s;
}

/* Leaves the library, then raises rc (if it is an error) through the session's handler; s NULL or
 * bad: MPI_COMM_WORLD's. */
int session_leave(struct mpi_session *s, int rc, const char *function);
#define SESSION_LEAVE(s, rc) session_leave((s), (rc), api_name)

#endif
