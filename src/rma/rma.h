/* SPDX-License-Identifier: BSD-3-Clause */
/* rma/: one-sided communication (MPI-3.1 chapter 11): windows, what moves data into and out of
 * them, and the epochs. May call: coll/, match/ and below. Called by: mpi/win, which checks
 * arguments; io/ for shared file pointers; mpi/env/init.c (rma_timer_allow).
 * docs/one-sided.md has the pictures.
 *
 * An operation goes one of two ways, chosen anew for each:
 *   near   the target lives on this node: straight into its memory; the target does nothing
 *   far    otherwise: a message to the target, which carries it out when it makes progress
 *
 * All functions return an MPI error class; the caller is inside the library.
 */
#ifndef HALE_RMA_RMA_H
#define HALE_RMA_RMA_H

#include "coll/coll.h"
#include "object/op.h"

struct errhandler;
struct info;
struct attributes;
struct rma_peer;
struct rma_pending;
struct rma_arriving;
struct rma_waiting;
struct rma_region;

/* Where one member's part of a window lies, as all members know it. */
struct rma_part {
	uint64_t base;	 /* its address in that member's memory */
	uint64_t bytes;	 /* its length */
	uint64_t offset; /* shared: where it begins in its owner's memory file */
	uint32_t unit;	 /* displacements count in so many bytes */
	uint32_t slot;	 /* of its words in that member's room */
	uint32_t shared; /* 1: it lies in the owner's memory file, and near members map it */
	uint32_t owner;	 /* shared: whose file that is, as a rank of the window */
};

enum rma_access {
	RMA_ACCESS_NONE,
	RMA_ACCESS_FENCE,
	RMA_ACCESS_START,
	RMA_ACCESS_LOCK,
	RMA_ACCESS_ALL
};

struct win {
	struct object obj;
	struct win *next;	 /* all windows of this process */
	struct comm *comm;	 /* the window's own; messages of one-sided operations use it */
	struct rma_peer *peer;	 /* [comm->size] */
	struct rma_part part;	 /* ours */
	struct rma_words *words; /* ours, in the segment */
	void *base;		 /* what the program sees */
	void *mapped;		 /* memory that the library made, and that goes with the window */
	size_t mapped_bytes;
	int flavor;	     /* MPI_WIN_FLAVOR_… */
	uint8_t access;	     /* enum rma_access */
	bool fence_used;     /* an operation was started since the last fence */
	bool exposed;	     /* between post and wait */
	bool slotted;	     /* part.slot is ours */
	uint32_t locks;	     /* targets locked one by one */
	uint32_t saved_lock; /* the lock word as an image has it */
	uint32_t completes;  /* COMPLETE that came and no wait has used */
	uint32_t awaited;    /* COMPLETE that the wait of this exposure needs */
	uint32_t tag;	     /* the last one used for data */
	int nstarted;	     /* targets of the access epoch that start began */
	int *started;
	char reserved[88];
	struct attributes *attrs; /* at Open MPI's offset, see object.h */
	struct rma_pending *pending;
	struct rma_arriving *arriving;
	struct rma_waiting *waiting;
	struct rma_region *regions; /* dynamic: what is attached */
	struct errhandler *errhandler;
	struct info *info;
	char name[MPI_MAX_OBJECT_NAME];
	char reserved_end[64];
};
FORTRAN_OFFSET(struct win, attrs, 0xf0);

/* ---- windows (window.c, memory.c) ---- */
/* Collective over comm, which becomes the window's. bytes and unit are this member's. */
int rma_win_create(struct comm *comm, int flavor, void *base, size_t bytes, int unit,
		   struct win **out);
/* The library makes the memory: *base. contiguous: shared parts lie one behind the other. */
int rma_win_allocate(struct comm *comm, int flavor, size_t bytes, int unit, bool contiguous,
		     struct win **out);
/* Waits for all members. The object itself stays, for the caller to free. */
int rma_win_close(struct win *w);
/* Of that member's part (MPI_PROC_NULL: of the lowest that has any), as this process sees it. */
int rma_shared_query(struct win *w, int rank, size_t *bytes, int *unit, void **base);
int rma_attach(struct win *w, void *base, size_t bytes);
int rma_detach(struct win *w, const void *base);

/* ---- operations ---- */
struct rma_span {
	void *buf;
	size_t count;
	struct datatype *type; /* NULL: there is none */
};

enum rma_kind { RMA_PUT, RMA_GET, RMA_UPDATE, RMA_SWAP };

struct rma_call {
	enum rma_kind kind;
	struct win *win;
	int target;
	MPI_Aint disp;
	struct rma_span origin; /* what is given; GET: where it goes */
	struct rma_span result; /* UPDATE, SWAP: where the target's old content goes; or none */
	const void *compare;	/* SWAP: one element */
	struct datatype *type;	/* the target's */
	size_t count;
	struct op *op;
	bool aside; /* the origin's buffer may change when the call returns: what stays is copied */
};

/* request NULL: the form without one. */
int rma_run(struct rma_call *call, struct request **request);
/* Is something under way to or from that member, as seen here? target -1: any. */
bool rma_is_pending(const struct win *w, int target);

/* ---- epochs (fence.c, lock.c). target -1: all ---- */
int rma_fence(struct win *w, int assertion);
int rma_start(struct win *w, const int *ranks, int n, int assertion);
int rma_complete(struct win *w);
int rma_post(struct win *w, const int *ranks, int n, int assertion);
int rma_wait(struct win *w);
int rma_test(struct win *w, int *flag);
int rma_lock(struct win *w, int type, int target, int assertion);
int rma_unlock(struct win *w, int target);
int rma_lock_all(struct win *w, int assertion);
int rma_unlock_all(struct win *w);
int rma_flush(struct win *w, int target, bool local);
int rma_sync(struct win *w);

/* May a timer carry out what far members want while this process computes? Set at MPI_Init. */
void rma_timer_allow(bool allowed);

#endif
