/* SPDX-License-Identifier: BSD-3-Clause */
/* Which way a communicator's blocking collectives go, and how its members come to agree on that:
 * shared cells where all live on one node, cells inside nodes and schedules between them where some
 * do (hier.h), schedules of messages elsewhere (docs/collectives.md, 'Which way a communicator
 * goes').
 *
 * The first blocking operation agrees, by messages. After a restart that may have changed who lives
 * where, members agree on the operation that agrees anew: the first one that none of them had begun
 * when the checkpoint was taken. All before it are brought to their end the way they were begun.
 */
#ifndef HALE_COLL_JOIN_H
#define HALE_COLL_JOIN_H

#include "coll/cells/cells.h"

struct coll_change;
struct coll_hier;

/* A communicator's part. */
struct coll_state {
	struct coll_home *home;	     /* shared cells in use; NULL: messages */
	struct coll_hier *hier;	     /* they are of this node's members only; NULL: of all */
	bool attached;		     /* home is valid for the next operation; else ask join_home */
	bool shares;		     /* it can have shared cells at all */
	bool entered;		     /* this process has told the others how it wants to go */
	bool joined;		     /* and knows what has come of that */
	uint64_t calls;		     /* blocking operations begun */
	uint32_t sequence;	     /* of schedules: tags */
	uint32_t lasting;	     /* persistent operations initialised: their tags */
	struct coll_change *changes; /* agreements after restarts, oldest first */
	struct request *farewell;    /* until all members have freed it; NULL: not freed yet */
	bool done;		     /* they have */
	struct comm *comm;
	struct coll_state *next, *prev; /* of all communicators that share */
};

extern bool coll_messages_only; /* HALE_COLL=messages */
extern bool coll_flat;		/* HALE_COLL=flat: messages wherever there are several nodes */

int join_create(struct comm *c);
void join_destroy(struct comm *c);
/* Freed by the program. Others may still be in operations of c: it lives on here until all members
 * have freed it, so that they find everybody if a restart makes them agree on something. */
void join_farewell(struct comm *c);

/* For the blocking operation that c->coll->calls counts already. */
struct coll_home *join_home(struct comm *c);
static inline struct coll_home *cells_home(struct comm *c)
{
	return LIKELY(c->coll->attached) ? c->coll->home : join_home(c);
}

void join_init(void);
/* Gives up farewells and agreements: no rank has operations before it any more, but for the one on
 * world that ends MPI. Some may have begun that when they are restored and others not, so
 * agreements on world go on. NULL: that one has ended, too, and so have they. */
void join_finish(struct comm *world);
/* This process's program has finalized, and another one takes its place: no communicator of it
 * agrees on anything any more. */
void join_quit(void);
/* Is neither a farewell nor an agreement under way? */
bool join_settled(void);
struct carry;
void join_carry(struct carry *c);
/* All processes have been restored, and what they were sending is in private memory. */
void join_restored(void);
int join_progress(void); /* progress hook */

#endif
