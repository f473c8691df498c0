/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators. */
#ifndef HALE_OBJECT_COMM_H
#define HALE_OBJECT_COMM_H

#include "object/group.h"

struct errhandler;
struct attributes;
struct topology;
struct info;
struct match_buffer;
struct mpi_session;
struct coll_state; /* coll/'s part: shared cell, operation counter, schedules */

/* Two contexts a communicator: what the user sends, and what collectives send. */
enum { COMM_CONTEXTS = 2, COMM_CONTEXT_MAX = 8192 };

struct comm {
	struct object obj;
	uint32_t context;   /* even; context + 1 is the collective one */
	int rank, size;	    /* in the local group */
	const int *world;   /* world rank of the members one can send to: group->world, or for an
			     * intercommunicator remote->world */
	int peers;	    /* how many: size, or remote size */
	struct comm *local; /* intercommunicators: an intracommunicator over the local group, made
			     * with it, for collectives among ourselves; else NULL */
	struct errhandler *errhandler;
	struct topology *topo;
	struct info *info;
	struct coll_state *coll;
	bool freed; /* MPI_Comm_free was called; lives until pending operations end */
	char name[MPI_MAX_OBJECT_NAME];
	struct match_buffer *buffer; /* of MPI_Comm_attach_buffer; NULL: none */
	struct mpi_session *session;     /* retained; NULL: of the world */
	char reserved[56];
	uint32_t cxx_flags;  /* Open MPI's flags: libmpi_cxx.so.40 tells the kinds apart by them */
	uint32_t agreements; /* nonblocking context agreements started on it so far */
	char reserved_middle[8];
	struct group *group;
	struct group *remote; /* NULL for intracommunicators */
	char reserved_late[8];
	struct attributes *attrs; /* at Open MPI's offset: see object.h, FORTRAN_OFFSET */
	char reserved_end[48];	  /* the Fortran library reads up to 0x144 */
};
FORTRAN_OFFSET(struct comm, cxx_flags, 0xe8);
FORTRAN_OFFSET(struct comm, group, 0xf8);
FORTRAN_OFFSET(struct comm, remote, 0x100);
FORTRAN_OFFSET(struct comm, attrs, 0x110);

static inline void comm_retain(struct comm *c)
{
	object_retain(&c->obj);
}
/* Last one out destroys (mpi/comm/comm.c). */
void comm_release(struct comm *c);

/* The live communicator that uses this context (either of its two), or NULL. */
struct comm *comm_by_context(uint32_t context);

#endif
