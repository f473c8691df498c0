/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that are made of other requests: MPI_Isendrecv (composite.c) and partitioned messages
 * (partitioned.c). A hook of progress completes one when its parts are complete. */
#ifndef HALE_MPI_P2P_COMPOSITE_H
#define HALE_MPI_P2P_COMPOSITE_H

#include "mpi/p2p/p2p.h"

struct partitioned; /* partitioned.c */

struct composite {
	struct composite *next;	     /* in the list of those that are under way */
	struct request *whole;	     /* what the program has */
	struct request *send, *recv; /* parts; NULL: none, or not any more */
	void *copy;		     /* MPI_Isendrecv_replace: what is sent; owned */
	int unready; /* what has to happen before the parts exist; it completes at 0 only */
	int error;   /* the parts could not be made; MPI_SUCCESS: they could */
	int tag;     /* the program's, for the status; MPI_ANY_TAG: the received part's is right */
	struct partitioned *partitioned; /* NULL: MPI_Isendrecv */
};

/* A composite with an active request of its own; NULL: no memory. */
struct composite *composite_new(struct comm *c);
/* Its parts are under way (or come while unready isn't 0): from now on the hook looks after it. */
void composite_begin(struct composite *k);
/* Ends one that has not begun. */
void composite_drop(struct composite *k);
/* One round of the hook; returns how many things moved. */
int composites_progress(void);

/* partitioned.c: its round of progress, called by the hook; and the end of a composite. */
int partitioned_progress(void);
void partitioned_free(struct partitioned *p);

#endif
