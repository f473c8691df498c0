/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi/p2p: bindings of point-to-point and of requests; here what several of its files share. */
#ifndef HALE_MPI_P2P_P2P_H
#define HALE_MPI_P2P_P2P_H

#include "mpi/api.h"

/* The status of a null or inactive request (MPI-3.1 3.7.3), and of a receive from MPI_PROC_NULL
 * (3.11). */
extern MPI_Status ompi_status_empty;
extern const MPI_Status p2p_status_proc_null;

/* Calls that give one status leave its MPI_ERROR as it is (3.2.5). */
static inline void status_copy_single(MPI_Status *to, const MPI_Status *from)
{
	if (to == MPI_STATUS_IGNORE)
		return;
	to->MPI_SOURCE = from->MPI_SOURCE;
	to->MPI_TAG = from->MPI_TAG;
	to->_cancelled = from->_cancelled;
	to->_ucount = from->_ucount;
}

/* Nothing to wait for: MPI_REQUEST_NULL, or a persistent request that is not started. */
static inline bool request_idle(const struct request *r)
{
	return request_is_null(r) || (r->persistent && !r->active);
}

/* Of those from the complete one `first` on: which one was complete first. So none is kept waiting
 * by those before it, and messages of one sender that match several receives are told in the order
 * in which they came. */
int request_first(int count, const MPI_Request *requests, int first);

/* The checks of all sends and of all receives, in Open MPI's order. */
static inline int p2p_check_send(const void *buf, int count, const struct datatype *t, int dst,
				 int tag, const struct comm *c)
{
	if (UNLIKELY(count < 0))
		return MPI_ERR_COUNT;
	if (UNLIKELY(tag < 0))
		return MPI_ERR_TAG;
	int rc = check_dest(dst, c);
	return LIKELY(!rc) ? check_buffer(buf, count, t) : rc;
}

static inline int p2p_check_recv(const void *buf, int count, const struct datatype *t, int src,
				 int tag, const struct comm *c)
{
	int rc = check_buffer(buf, count, t);

	if (LIKELY(!rc))
		rc = check_recv_tag(tag);
	return LIKELY(!rc) ? check_source(src, c) : rc;
}

/* The first failed operation of a call that completes several. */
struct failure {
	struct comm *comm; /* retained; NULL: none, or one without communicator */
	int error;
};

/* For a complete request that is not idle, inside the library: its status is made (a generalized
 * one's query function is called) and copied to *out unless NULL; then it becomes inactive or is
 * freed, and *handle null. Notes the first error in *f. Returns the operation's own error. */
int request_retire(MPI_Request *handle, MPI_Status *out, struct failure *f);

/* Ends a call: leaves the library and calls the error handler of the failed operation. */
int request_leave(struct failure *f, const char *function);

/* Ends a call that looked and found nothing: programs call it in a loop, so other ranks of an
 * oversubscribed node and other threads get a chance to make it true. Returns MPI_SUCCESS. */
int p2p_leave_empty(const char *function);

/* Generalized requests (grequest.c); the user's functions are called outside the guard. */
int grequest_query(struct request *r);
int grequest_free(struct request *r);
int grequest_cancel(struct request *r);

/* The buffers of sessions (buffer.c), whose bindings stand in mpi/session/. */
struct mpi_session;
int p2p_session_attach(struct mpi_session *s, void *buffer, int size);
int p2p_session_detach(struct mpi_session *s, void *buffer, int *size);
int p2p_session_iflush(struct mpi_session *s, MPI_Request *request);

#endif
