/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions (MPI-4.0 11.3): who opened the library, with an error handler and a buffer of its own.
 * Groups and communicators that come from a session hold a reference: its memory stays as long as
 * they do, what it owns goes with MPI_Session_finalize. */
#ifndef HALE_OBJECT_SESSION_H
#define HALE_OBJECT_SESSION_H

#include "base/heap.h"
#include "object/object.h"

struct errhandler;
struct info;
struct match_buffer;

struct mpi_session {
	struct object obj;
	struct errhandler *errhandler; /* retained */
	struct info *info;	       /* what MPI_Session_get_info tells; owned */
	struct match_buffer *buffer;   /* of MPI_Session_attach_buffer; NULL: none */
};

static inline bool session_ok(const struct mpi_session *s)
{
	return object_is(s, OBJECT_SESSION);
}

/* NULL: of the world. */
static inline struct mpi_session *session_retain(struct mpi_session *s)
{
	if (s)
		object_retain(&s->obj);
	return s;
}

/* The last one out frees the bare memory. */
static inline void session_release(struct mpi_session *s)
{
	if (s && object_drop(&s->obj))
		heap_free(s);
}

#endif
