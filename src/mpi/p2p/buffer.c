/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers for MPI_Bsend: the process's (MPI-3.1 3.6), those of communicators and sessions and the
 * ways to flush them (MPI-4.1 3.6). */
#include <limits.h>
#include "mpi/mpi4.h"
#include "mpi/p2p/p2p.h"
#include "object/session.h"

int PMPI_Buffer_attach_c(void *buffer, MPI_Count size);
int PMPI_Buffer_detach_c(void *buffer, MPI_Count *size);
int PMPI_Comm_attach_buffer_c(MPI_Comm comm, void *buffer, MPI_Count size);
int PMPI_Comm_detach_buffer_c(MPI_Comm comm, void *buffer, MPI_Count *size);

static int buffer_attach(struct match_buffer **at, void *buffer, MPI_Count size)
{
	bool automatic = buffer == MPI_BUFFER_AUTOMATIC;
	if (!buffer || (size < 0 && !automatic))
		return MPI_ERR_ARG;
	return match_buffer_attach(at, buffer, (size_t)size, automatic);
}

static int buffer_detach(struct match_buffer **at, void *buffer, MPI_Count *size)
{
	void *buf = NULL;
	size_t bytes = 0;
	if (!buffer || !size)
		return MPI_ERR_ARG;
	int rc = match_buffer_detach(at, &buf, &bytes);
	if (rc == MPI_SUCCESS) {
		*(void **)buffer = buf;
		*size = (MPI_Count)bytes;
	}
	return rc;
}

/* What does not fit is as large as can be: the buffer was attached by a `_c` function. */
static int buffer_detach_int(struct match_buffer **at, void *buffer, int *size)
{
	MPI_Count bytes = 0;
	int rc = buffer_detach(at, buffer, size ? &bytes : NULL);
	if (rc == MPI_SUCCESS)
		*size = bytes > INT_MAX ? INT_MAX : (int)bytes;
	return rc;
}

static int buffer_iflush(struct match_buffer *m, MPI_Request *request)
{
	struct request *r;
	if (!request)
		return MPI_ERR_REQUEST;
	int rc = match_buffer_iflush(m, &r);
	if (!rc)
		*request = request_handle(r);
	return rc;
}

int PMPI_Buffer_attach(void *buffer, int size)
{
	API_ENTER("MPI_Buffer_attach");
	return API_LEAVE(NULL, buffer_attach(&match_process_buffer, buffer, size));
}
API_ALIAS(Buffer_attach);

int PMPI_Buffer_detach(void *buffer, int *size)
{
	API_ENTER("MPI_Buffer_detach");
	return API_LEAVE(NULL, buffer_detach_int(&match_process_buffer, buffer, size));
}
API_ALIAS(Buffer_detach);

int PMPI_Buffer_attach_c(void *buffer, MPI_Count size)
{
	API_ENTER("MPI_Buffer_attach_c");
	return API_LEAVE(NULL, buffer_attach(&match_process_buffer, buffer, size));
}
API_ALIAS(Buffer_attach_c);

int PMPI_Buffer_detach_c(void *buffer, MPI_Count *size)
{
	API_ENTER("MPI_Buffer_detach_c");
	return API_LEAVE(NULL, buffer_detach(&match_process_buffer, buffer, size));
}
API_ALIAS(Buffer_detach_c);

int PMPI_Buffer_flush(void)
{
	API_ENTER("MPI_Buffer_flush");
	return API_LEAVE(NULL, match_buffer_flush(match_process_buffer));
}
API_ALIAS(Buffer_flush);

int PMPI_Buffer_iflush(MPI_Request *request)
{
	API_ENTER("MPI_Buffer_iflush");
	return API_LEAVE(NULL, buffer_iflush(match_process_buffer, request));
}
API_ALIAS(Buffer_iflush);

int PMPI_Comm_attach_buffer(MPI_Comm comm, void *buffer, int size)
{
	API_ENTER("MPI_Comm_attach_buffer");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	return API_LEAVE(c, buffer_attach(&c->buffer, buffer, size));
}
API_ALIAS(Comm_attach_buffer);

int PMPI_Comm_detach_buffer(MPI_Comm comm, void *buffer, int *size)
{
	API_ENTER("MPI_Comm_detach_buffer");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	return API_LEAVE(c, buffer_detach_int(&c->buffer, buffer, size));
}
API_ALIAS(Comm_detach_buffer);

int PMPI_Comm_attach_buffer_c(MPI_Comm comm, void *buffer, MPI_Count size)
{
	API_ENTER("MPI_Comm_attach_buffer_c");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	return API_LEAVE(c, buffer_attach(&c->buffer, buffer, size));
}
API_ALIAS(Comm_attach_buffer_c);

int PMPI_Comm_detach_buffer_c(MPI_Comm comm, void *buffer, MPI_Count *size)
{
	API_ENTER("MPI_Comm_detach_buffer_c");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	return API_LEAVE(c, buffer_detach(&c->buffer, buffer, size));
}
API_ALIAS(Comm_detach_buffer_c);

int PMPI_Comm_flush_buffer(MPI_Comm comm)
{
	API_ENTER("MPI_Comm_flush_buffer");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	return API_LEAVE(c, match_buffer_flush(c->buffer));
}
API_ALIAS(Comm_flush_buffer);

int PMPI_Comm_iflush_buffer(MPI_Comm comm, MPI_Request *request)
{
	API_ENTER("MPI_Comm_iflush_buffer");
	struct comm *c = comm_of(comm);
	if (!comm_ok(c))
		return API_FAIL(NULL, MPI_ERR_COMM);
	return API_LEAVE(c, buffer_iflush(c->buffer, request));
}
API_ALIAS(Comm_iflush_buffer);

/* The bindings of sessions: mpi/session/ raises their errors. */

int p2p_session_attach(struct mpi_session *s, void *buffer, int size)
{
	return buffer_attach(&s->buffer, buffer, size);
}

int p2p_session_detach(struct mpi_session *s, void *buffer, int *size)
{
	return buffer_detach_int(&s->buffer, buffer, size);
}

int p2p_session_iflush(struct mpi_session *s, MPI_Request *request)
{
	return buffer_iflush(s->buffer, request);
}
