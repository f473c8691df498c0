/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends in all modes, blocking, nonblocking and persistent. */
#include "mpi/p2p/p2p.h"

#include "mpi/task/intask.h"

#define SEND_CHECKS()                                                                              \
	struct comm *c = comm_of(comm);                                                            \
	struct datatype *t = datatype_of(type);                                                    \
	if (!comm_ok(c))                                                                           \
		return API_FAIL(NULL, MPI_ERR_COMM);                                               \
	int bad = p2p_check_send(buf, count, t, dst, tag, c);                                      \
	if (UNLIKELY(bad))                                                                         \
	return API_FAIL(c, bad)

#define SEND_BLOCKING(name, mode)                                                                  \
	int PMPI_##name(const void *buf, int count, MPI_Datatype type, int dst, int tag,           \
			MPI_Comm comm)                                                             \
	{                                                                                          \
		API_ENTER("MPI_" #name);                                                           \
		SEND_CHECKS();                                                                     \
		if (UNLIKELY(tasklog_now != NULL))                                                 \
			return API_LEAVE(c,                                                        \
					 intask_send(buf, (size_t)count, t, dst, tag, c, mode));   \
		return API_LEAVE(c, match_send(buf, (size_t)count, t, dst, tag, c, mode));         \
	}                                                                                          \
	API_ALIAS(name)

#define SEND_NONBLOCKING(name, mode, start)                                                        \
	int PMPI_##name(const void *buf, int count, MPI_Datatype type, int dst, int tag,           \
			MPI_Comm comm, MPI_Request *request)                                       \
	{                                                                                          \
		API_ENTER("MPI_" #name);                                                           \
		SEND_CHECKS();                                                                     \
		if (UNLIKELY(!request))                                                            \
			return API_FAIL(c, MPI_ERR_REQUEST);                                       \
		struct request *r = NULL;                                                          \
		int rc = UNLIKELY(tasklog_now != NULL)                                             \
			     ? intask_##start(buf, (size_t)count, t, dst, tag, c, mode, &r)        \
			     : match_##start(buf, (size_t)count, t, dst, tag, c, mode, &r);        \
		if (LIKELY(rc == MPI_SUCCESS))                                                     \
			*request = request_handle(r);                                              \
		return API_LEAVE(c, rc);                                                           \
	}                                                                                          \
	API_ALIAS(name)

SEND_BLOCKING(Send, MATCH_STANDARD);
SEND_BLOCKING(Bsend, MATCH_BUFFERED);
SEND_BLOCKING(Ssend, MATCH_SYNCHRONOUS);
SEND_BLOCKING(Rsend, MATCH_READY);

SEND_NONBLOCKING(Isend, MATCH_STANDARD, isend);
SEND_NONBLOCKING(Ibsend, MATCH_BUFFERED, isend);
SEND_NONBLOCKING(Issend, MATCH_SYNCHRONOUS, isend);
SEND_NONBLOCKING(Irsend, MATCH_READY, isend);

SEND_NONBLOCKING(Send_init, MATCH_STANDARD, send_init);
SEND_NONBLOCKING(Bsend_init, MATCH_BUFFERED, send_init);
SEND_NONBLOCKING(Ssend_init, MATCH_SYNCHRONOUS, send_init);
SEND_NONBLOCKING(Rsend_init, MATCH_READY, send_init);
