/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: what MPI_Request points to. match/ makes those of messages, coll/ those of nonblocking
 * collectives, mpi/ generalized ones. Whoever finishes the operation calls request_complete. */
#ifndef HALE_OBJECT_REQUEST_H
#define HALE_OBJECT_REQUEST_H

#include "object/comm.h"
#include "object/datatype.h"

typedef enum request_kind {
	REQUEST_NONE = 0, /* completed at birth: PROC_NULL, eager sends */
	REQUEST_SEND,
	REQUEST_RECV,
	REQUEST_COLL,
	REQUEST_GENERALIZED,
} request_kind_t;

struct request {
	struct object obj;
	uint8_t kind;	 /* request_kind_t */
	bool persistent; /* made by *_init; survives completion */
	bool active;	 /* started and not yet waited for; non-persistent ones always are */
	bool cancelled;
	volatile int complete; /* 0: not yet; what completes later has a higher one */
	MPI_Status status; /* valid once complete; MPI_ERROR is the operation's own result */
	/* the operation, kept so that a persistent request can be started again */
	void *buf;
	size_t count;
	struct datatype *type; /* retained */
	struct comm *comm;     /* retained */
	int peer, tag;
	uint32_t mode; /* enum match_mode */
	/* kinds other than messages */
	int (*start)(struct request *r); /* persistent; NULL: match_start */
	int fortran_index;		 /* copy of obj.f_index, filled by object_to_fortran */
	int (*cancel)(struct request *r);
	void (*destroy)(struct request *r); /* frees what the kind added; not the request itself */
	int (*query)(struct request *r);    /* generalized: fills status, at completion */
	void *extra;			    /* the kind's own data */
	/* begun inside a task that may be executed again (mpi/task/); NULL: not */
	void *note;
	void (*note_give)(struct request *r); /* when the program is told that r is complete */
	void (*note_drop)(struct request *r); /* before the request itself goes */
	/* match/'s part (list links, progress of a transfer) follows in its own struct, which
	 * begins with this one */
};

FORTRAN_OFFSET(struct request, fortran_index, 0x68);

/* Of a request that is complete at birth. */
enum { REQUEST_COMPLETE = 1 };

/* The value of `complete` that was given last; always odd, so it is never 0. */
extern uint32_t request_completions;

static inline void request_complete(struct request *r, int error)
{
	r->status.MPI_ERROR = error;
	request_completions += 2;
	__asm__ volatile("" ::: "memory");
	r->complete = (int)request_completions;
}

/* Both are complete: was a before b? At most 2^30 completions may lie between them. */
static inline bool request_was_first(const struct request *a, const struct request *b)
{
	if (a->complete == REQUEST_COMPLETE || b->complete == REQUEST_COMPLETE)
		return b->complete != REQUEST_COMPLETE;
	return (int32_t)((uint32_t)a->complete - (uint32_t)b->complete) < 0;
}

#endif
