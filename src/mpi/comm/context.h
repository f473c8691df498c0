/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreement on context ids: what the two ways of carrying it (context.c by a collective,
 * context_wire.c by messages and without waiting) have in common.
 *
 * Every process keeps a mask of its free ids. Members AND their masks and take the lowest id that
 * is left. Two agreements that are under way in one process at once (threads, MPI_Comm_idup) must
 * not offer the same ids, or both could take one. So an agreement offers a mask only while it owns
 * it, and zeros otherwise; the result is then empty, and everybody tries again:
 *
 *   round 0    the eager half of the ids, owned by whoever comes first
 *   round 1…   the other half, owned by the agreement with the lowest key among those of this
 *              process that are past round 0
 *
 * Nobody waits for ever: past round 0 all members take part, the agreement with the lowest key of
 * all owns the mask everywhere as soon as rounds of others that hold it end, and those can end,
 * since their members too are past round 0. (With one mask only, an owner that waits for a member
 * which itself waits in another agreement would be a deadlock.) docs/models/context.pml checks it.
 */
#ifndef HALE_MPI_COMM_CONTEXT_H
#define HALE_MPI_COMM_CONTEXT_H

#include "mpi/comm/comm.h"

enum {
	CONTEXT_IDS = COMM_CONTEXT_MAX / COMM_CONTEXTS,
	CONTEXT_HALF_WORDS = CONTEXT_IDS / 2 / 64,
	CONTEXT_WORDS = CONTEXT_HALF_WORDS + 1, /* the mask, and all ones if it was owned */
};

struct context_ticket {
	struct context_ticket *next; /* of this process */
	uint64_t key;
	int round;
	bool owner;
	int want;		       /* how many ids, 1 or 2 */
	uint32_t contexts[2];	       /* the outcome */
	uint64_t words[CONTEXT_WORDS]; /* offered, then the result */
};

void context_ticket_open(struct context_ticket *t, uint64_t key, int want);
/* Fills words for the next round. */
void context_ticket_offer(struct context_ticket *t);
/* Reads the result in words: true when it is over, with *error, and contexts unless that is set. */
bool context_ticket_settle(struct context_ticket *t, int *error);
/* Gives up in the middle of a round. */
void context_ticket_abandon(struct context_ticket *t);
void context_ticket_close(struct context_ticket *t);

/* Keys: a context id on top, then what tells apart agreements under way on the same communicator.
 */
enum context_key_kind { KEY_ALL = 0, KEY_TAG, KEY_SEQUENCE, KEY_BRIDGE };
static inline uint64_t context_key(uint32_t context, enum context_key_kind kind, uint32_t number)
{
	return (uint64_t)context << 36 | (uint64_t)kind << 32 | number;
}

#endif
