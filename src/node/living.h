/* SPDX-License-Identifier: BSD-3-Clause */
/* The view of a job with replicas (docs/redundancy.md): which processes stand for which rank, and
 * which of them live. The head computes views and every process acts on them, so each rule here is
 * a pure function of the view: all who have the same view come to the same answer.
 *
 * With n ranks of degree d the job has n * d processes. Process p is replica p / n of rank p % n;
 * p / n is its slot. A placement in blocks so puts the replicas of a rank on different nodes.
 */
#ifndef HALE_NODE_LIVING_H
#define HALE_NODE_LIVING_H

#include <stdbool.h>
#include <stdint.h>

enum { LIVING_DEGREE_MAX = 3, LIVING_NONE = -1 };
/* The slot of witnesses in a job with --audit (docs/audit.md). */
enum { LIVING_WITNESS = 2 };
/* Of each rank of a job with shadows: main, shadow, and room for the copy that takes the place of
 * the shadow when it jumps. At most two of them live. */
enum { LIVING_SHADOW_SLOTS = 3, LIVING_SHADOW_DEGREE = 2 };
/* In a layout: a process that is dead is on no node. */
#define LIVING_NOWHERE UINT32_MAX

/* CONVICTED: it has sent wrong messages, and what it has said of others counts no more. ABSENT, in
 * a node's segment: it was dead before that was made. */
enum living_lost { LIVING_LOST = 1, LIVING_CONVICTED = 2, LIVING_ABSENT = 3 };

struct living {
	uint32_t number; /* +1 with every change */
	uint32_t nranks, degree;
	unsigned char *lost; /* [nranks * degree]: 0, or enum living_lost: that process is dead */
	bool shadows; /* the leader alone sends, to all; its followers are mute (docs/shadows.md) */
	bool audits;  /* slot LIVING_WITNESS is for witnesses */
};

static inline uint32_t living_rank_of(uint32_t process, uint32_t nranks)
{
	return process % nranks;
}

static inline uint32_t living_slot_of(uint32_t process, uint32_t nranks)
{
	return process / nranks;
}

static inline uint32_t living_process(const struct living *v, uint32_t rank, uint32_t slot)
{
	return slot * v->nranks + rank;
}

static inline bool living_lives(const struct living *v, uint32_t rank, uint32_t slot)
{
	return !v->lost[living_process(v, rank, slot)];
}

/* The slot of rank's leader, who decides what its program can't know by itself: the lowest one that
 * lives. LIVING_NONE: all replicas of the rank are dead. */
int living_leader(const struct living *v, uint32_t rank);

/* The slot of that replica of `from` which sends to the replica `slot` of any other rank: the same
 * slot, or else the next one that lives, in a circle; with shadows always the leader. Witnesses are
 * passed over.
 * LIVING_NONE: all are dead. */
int living_provider(const struct living *v, uint32_t from, uint32_t slot);

/* Is that living process a witness? Nobody waits for one, and it provides for nobody. The last
 * process of a rank is none. */
bool living_is_witness(const struct living *v, uint32_t rank, uint32_t slot);

/* How many replicas of the rank live. */
uint32_t living_count(const struct living *v, uint32_t rank);

/* The next view: that process is dead. False: it was dead before, nothing changes. */
bool living_lose(struct living *v, uint32_t process);
/* The next view: that process, which was dead, lives as a copy of another one of its rank. */
void living_return(struct living *v, uint32_t process);

#endif
