/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared cells: blocking collectives whose members all live on this node (docs/collectives.md).
 *
 * Each member of a communicator owns a cell in the node's segment, found by (context / 2, world
 * rank). Operations of one communicator are numbered 1, 2, 3, … in the order in which all members
 * call them. What a member gives in operation k it deposits under k in its own cell:
 *
 *	cell | progress | completed, result | arrivals | header[k % 128] … | ring of payloads |
 *
 *	header	  seq = k (published last), bytes, and either where the payload lies in the cell or
 *		  the address of it in the owner's memory
 *	progress  k * 4 + stage: where its owner is; (k + 1) * 4 says that it is done with k
 *	arrivals  (leader's cell) how many members have come to the present full operation
 *	completed (leader's cell) the last full operation that all have come to; who came last; the
 *		  result itself if it is small
 *
 * Invariants
 *  1. Every word but arrivals only grows and has one writer at a time. A reader waits for
 *     "at least"; so a word that is still zero after a restart only makes it wait longer.
 *     What a reader can't wait for again is how far others had got: their owners may have left
 *     for another home by then. So for its reader progress never goes back, not by a restart
 *     either (cells_ckpt.c).
 *  2. A deposit under k lives until all members are done with k.
 *  3. Whoever has deposited an address doesn't leave the operation before all are done with it.
 *  4. Between arriving last and publishing completed there is no safe point.
 */
#ifndef HALE_COLL_CELLS_H
#define HALE_COLL_CELLS_H

#include <stdatomic.h>
#include <string.h>
#include "ckpt/rank.h"
#include "coll/args.h"
#include "coll/cells/cells_mirror.h"
#include "node/coll_layout.h"
#include "coll/way.h"

enum { COLL_HEADER_SMALL = 32, COLL_RESULT_SMALL = 48, COLL_STAGES = 4 };

struct coll_header {
	_Atomic uint64_t seq __attribute__((aligned(CACHE_LINE)));
	uint64_t bytes;
	uint64_t address;	 /* in the owner's memory; 0: the payload is in the cell */
	_Atomic uint64_t offset; /* in ring; payloads up to COLL_HEADER_SMALL lie in small. With an
				  * address: where the owner's part of a reduction will be, or
				  * COLL_PARTS and who owns a part (cells_parts.c) */
	char small[COLL_HEADER_SMALL];
};

/* In small, beside the first deposit of a large operation that can go either way. */
struct coll_large {
	uint64_t bytes; /* in all pieces together: who expects another number stays in step */
	struct way_order order;
	bool backward; /* the last piece of a broadcast comes first */
};
_Static_assert(sizeof(struct coll_large) <= COLL_HEADER_SMALL, "beside a payload");

/* How many members have come to a full operation while they ran on one core. Not exact where a
 * process moves in between: it only helps to choose between pausing and yielding. */
struct coll_core {
	_Atomic uint64_t seq __attribute__((aligned(CACHE_LINE))); /* the operation */
	_Atomic uint32_t come, came;				   /* to it; to the one before */
};

struct coll_cell {
	_Atomic uint64_t progress __attribute__((aligned(CACHE_LINE)));
	_Atomic uint64_t
	    arrived;	/* mirrored cells: the last full operation its owner has come to */
	uint64_t probe; /* address of a word that peers read to find out whether they can */
	_Atomic uint64_t completed __attribute__((aligned(CACHE_LINE))); /* seq << 16 | who */
	char result[COLL_RESULT_SMALL] __attribute__((aligned(16)));
	_Atomic uint32_t arrivals __attribute__((aligned(CACHE_LINE)));
	struct way_costs costs __attribute__((aligned(CACHE_LINE)));
	struct coll_core core[COLL_CORES]; /* leader's cell */
	struct coll_header header[COLL_CELL_HEADERS];
	char ring[COLL_CELL_RING] __attribute__((aligned(CACHE_LINE)));
};
_Static_assert(sizeof(struct coll_cell) == COLL_CELL_BYTES, "layout.h");

/* The private half of this process's cell of one shared context. It outlives communicators: the
 * next one with this context goes on counting where the last one ended. */
struct coll_home {
	struct coll_cell *cell;
	uint64_t seq;	     /* last operation begun */
	uint64_t progress;   /* copy of the cell's word */
	uint64_t known_done; /* all members are known to be done with operations up to this */
	/* payloads in the ring, oldest first; positions count on and on, modulo the ring's length
	 */
	struct coll_payload {
		uint64_t seq, end;
	} payload[COLL_CELL_HEADERS];
	unsigned first, payloads;
	uint64_t head, tail;
	size_t lap; /* of the ring's bytes so many are used, again and again */
	/* members of the present occupant, or of the last one */
	int n, rank;
	int *world;
	struct coll_cell **cells;
	struct mailbox **mail;
	bool reads; /* members can read each other's memory */
	/* which way large payloads go: as root, as leader, and what the leader has said for the
	 * next large reduction of each size */
	struct way_plan bcast_plan[WAY_SIZES], reduce_plan[WAY_SIZES];
	struct way_order reduce_order[WAY_SIZES];
	bool backward; /* the last broadcast in pieces from here went so */
	/* during a checkpoint */
	uint64_t frozen_completed;  /* the leader's word when all had stopped */
	uint64_t *frozen_progress;  /* and the members' */
	struct coll_mirror *mirror; /* NULL: the cells are shared (cells_mirror.h) */
	struct coll_cell *saved;    /* what others still need of the cell; there beforehand, so that
				     * a checkpoint can't fail for want of it */
};

/* More processes than cores on this node? */
static inline bool cells_crowded(void)
{
	return link_self()->segment->oversubscribed;
}

/* ---- cells.c: homes, deposits, arrivals ---- */
extern struct coll_home coll_homes[COLL_SHARED_CONTEXTS];
extern unsigned coll_epoch; /* +1 at every restore */

static inline uint64_t cells_done(uint64_t k)
{
	return (k + 1) * COLL_STAGES;
}

static inline bool cells_reached(const _Atomic uint64_t *word, uint64_t value)
{
	return atomic_load_explicit(word, memory_order_acquire) >= value;
}

/* Waits with progress and safe points until *word >= value. */
void cells_wait_slow(const _Atomic uint64_t *word, uint64_t value);
static inline void cells_wait(const _Atomic uint64_t *word, uint64_t value)
{
	if (!cells_reached(word, value))
		cells_wait_slow(word, value);
}
/* The same, but comes back early (false) when the process has been restored meanwhile. */
bool cells_wait_epoch(const _Atomic uint64_t *word, uint64_t value, unsigned epoch);

/* Wakes members that sleep; after a full barrier that follows the publication. */
void cells_ring(const struct coll_home *h);

/* Begins the next operation: its number, with this process's header for it free. */
void cells_header_wait(struct coll_home *h, uint64_t k);
static inline uint64_t cells_begin(struct coll_home *h)
{
	uint64_t k = ++h->seq;
	if (UNLIKELY(h->known_done + COLL_CELL_HEADERS < k))
		cells_header_wait(h, k);
	return k;
}

static inline struct coll_header *cells_header(const struct coll_home *h, int member, uint64_t k)
{
	return &h->cells[member]->header[k % COLL_CELL_HEADERS];
}

/* Member's deposit under k, waited for. */
static inline struct coll_header *cells_deposit_of(const struct coll_home *h, int member,
						   uint64_t k)
{
	struct coll_header *d = cells_header(h, member, k);
	if (UNLIKELY(!cells_reached(&d->seq, k))) {
		cells_wait_slow(&d->seq, k);
		d = cells_header(h, member, k); /* the wait may lead to mirrors */
	}
	return d;
}

static inline char *cells_payload(const struct coll_home *h, int member, struct coll_header *d)
{
	return d->bytes <= COLL_HEADER_SMALL ? d->small : h->cells[member]->ring + d->offset;
}

/* Room for a payload under k in this process's cell, at most COLL_CELL_RING / 2 bytes; the caller
 * fills it and then publishes. */
char *cells_room_slow(struct coll_home *h, uint64_t k, size_t bytes);
static inline char *cells_room(struct coll_home *h, uint64_t k, size_t bytes)
{
	/* room first: waiting for it may lead through a checkpoint into a new, empty cell */
	char *room = UNLIKELY(bytes > COLL_HEADER_SMALL) ? cells_room_slow(h, k, bytes) : NULL;
	struct coll_header *d = cells_header(h, h->rank, k);
	room = room ? room : d->small;
	d->bytes = bytes;
	d->address = 0;
	return room;
}
/* The next header comes back from its readers' caches meanwhile. */
static inline void cells_prefetch(const struct coll_home *h, uint64_t k)
{
	__builtin_prefetch(cells_header(h, h->rank, k + 1), 1);
}
static inline void cells_publish(struct coll_home *h, uint64_t k)
{
	atomic_store_explicit(&cells_header(h, h->rank, k)->seq, k, memory_order_release);
	cells_prefetch(h, k);
}
/* Publishes, and wakes who waits for it. */
void cells_publish_ring(struct coll_home *h, uint64_t k);
/* The payload stays in this process's memory, and what it makes of it will be at result: to be
 * published, and left only after all readers are done. */
static inline void cells_point(struct coll_home *h, uint64_t k, const void *p, size_t bytes,
			       uint64_t result)
{
	struct coll_header *d = cells_header(h, h->rank, k);
	d->bytes = bytes;
	d->address = (uintptr_t)p;
	atomic_store_explicit(&d->offset, result, memory_order_relaxed);
}

/* Full operations: tells that this process has come (after its deposit, if any). True: all have,
 * and this one came last: it makes the result and calls cells_complete. False: completed. */
bool cells_arrive(struct coll_home *h, uint64_t k);
void cells_complete(struct coll_home *h, uint64_t k);
/* Who came last in k; after cells_arrive said false. */
static inline int cells_completer(const struct coll_home *h)
{
	return (int)(atomic_load_explicit(&h->cells[0]->completed, memory_order_acquire) & 0xffff);
}

static inline void cells_stage(struct coll_home *h, uint64_t value)
{
	h->progress = value;
	atomic_store_explicit(&h->cell->progress, value, memory_order_release);
}
/* Done with k; the second also wakes who waits for that. */
static inline void cells_finish(struct coll_home *h, uint64_t k)
{
	cells_stage(h, cells_done(k));
}
void cells_stage_ring(struct coll_home *h, uint64_t value);
static inline void cells_finish_ring(struct coll_home *h, uint64_t k)
{
	cells_stage_ring(h, cells_done(k));
}
/* Done with a small deposit. Its owner wants the header back, but that is COLL_CELL_HEADERS
 * operations later and in a bundle: it is woken for the last of each. */
enum { COLL_BUNDLE = 8 };
static inline void cells_finish_small(struct coll_home *h, uint64_t k)
{
	if (UNLIKELY(k % COLL_BUNDLE == 0))
		cells_finish_ring(h, k);
	else
		cells_finish(h, k);
}
/* All that have come to the full operation k are done with k - 1. */
static inline void cells_all_done(struct coll_home *h, uint64_t k)
{
	if (h->known_done < k)
		h->known_done = k;
}
/* Waits until all members have reached that stage. */
void cells_wait_all(struct coll_home *h, uint64_t value);
/* Waits until the deposits of members [0, hi) are all there at once: from then on they can be used
 * in place up to the next safe point. */
void cells_wait_deposits(struct coll_home *h, uint64_t k, int hi);

/* This process decides how the next large operation of that kind goes. */
struct way_order cells_order(const struct coll_home *h, struct way_plan *plans, unsigned kinds,
			     size_t bytes);

/* ---- cells_read.c: single copy from a peer's memory ---- */
/* Once a process: may be read by its siblings. */
extern const uint64_t coll_probe_word;
void cells_read_allow(void);
bool cells_read_probe(const struct coll_home *h, int member);
/* Copies bytes at address in member's memory to dst. MPI_SUCCESS or a class. */
int cells_read(const struct coll_home *h, int member, uint64_t address, void *dst, size_t bytes);
/* The other way; false: not all, and the member has to read it. Not over mirrors. */
bool cells_write(const struct coll_home *h, int member, uint64_t address, const void *src,
		 size_t bytes);
/* Packed bytes from a member's memory or cell into count elements of t at buf; more than fits:
 * MPI_ERR_TRUNCATE after taking what fits. */
int cells_take(const struct coll_home *h, int member, const void *local, uint64_t address,
	       size_t bytes, void *buf, size_t count, const struct datatype *t);

/* ---- cells_parts.c: a large block by single copies that all members make ---- */
#define COLL_PARTS (1ull << 63)
enum { COLL_PARTS_MEMBERS = 32 }; /* at most: parts become small */
/* The root, after publishing the address p under k with offset COLL_PARTS; to be left as every
 * operation with an address. */
void cells_parts_give(struct coll_home *h, uint64_t k, const void *p, size_t bytes,
		      struct way_clock *clock);
/* A reader whose buffer is one run of bytes, as many as the root gives. Finishes k, and comes back
 * when nobody needs its buffer any more. */
int cells_parts_take(struct coll_home *h, uint64_t k, int root, void *p, size_t bytes,
		     struct way_clock *clock);

/* ---- cells_ckpt.c: while all members stand still, and after ---- */
void cells_save(void);
void cells_resume(bool restored);

/* ---- homes ---- */
/* For those members of c that live on this node. False: no memory. */
bool cells_home_occupy(struct coll_home *h, const struct comm *c);
/* When all members are done with what this process has deposited: they may still read it. */
void cells_home_vacate(struct coll_home *h);
/* The memory of a home's occupant; only when nobody needs its deposits any more. */
void cells_home_free(struct coll_home *h);

/* ---- cells_bcast.c, cells_move.c, cells_reduce.c: arguments as in coll.h, n > 1 ---- */
enum { COLL_INLINE_DEFAULT = 16384 };
extern size_t coll_inline_max; /* larger payloads are read from their owner's memory;
				* HALE_COLL_INLINE, at most COLL_CELL_RING / 2 */
/* More than two processes: large payloads go through the cells in pieces, operations of their own.
 * Two copies by the processor cost less than one by the kernel, which looks up and pins every page;
 * pieces stay in the caches, and the longer they are the fewer context switches they take. */
enum { COLL_PIECE = 65536, COLL_PIECE_REDUCE = 131072, COLL_PIECE_TABLE = 131072 };
/* Two processes: a second copy out of a cell, cold in the reader's cache, costs more than a system
 * call from here on. */
enum { COLL_INLINE_PAIR = 4096 };
static inline size_t cells_inline(const struct coll_home *h)
{
	return h->n == 2 && h->reads && coll_inline_max > COLL_INLINE_PAIR ? COLL_INLINE_PAIR
									   : coll_inline_max;
}
int cells_barrier(struct coll_home *h);
int cells_bcast(struct coll_home *h, const struct coll_args *a);
int cells_gather(struct coll_home *h, const struct coll_args *a);
int cells_scatter(struct coll_home *h, const struct coll_args *a);
int cells_allgather(struct coll_home *h, const struct coll_args *a);
int cells_alltoall(struct coll_home *h, const struct coll_args *a);
int cells_reduce(struct coll_home *h, const struct coll_args *a);
int cells_allreduce(struct coll_home *h, const struct coll_args *a);
/* cells_reduce_large.c: of more than cells_inline bytes */
int cells_reduce_large(struct coll_home *h, const struct coll_args *a);
int cells_allreduce_large(struct coll_home *h, const struct coll_args *a);
/* Do large reductions go through the cells whole, so that members needn't read each other's memory?
 */
bool cells_reduce_in_pieces(const struct coll_args *a);
int cells_reduce_scatter(struct coll_home *h, const struct coll_args *a);
int cells_scan(struct coll_home *h, const struct coll_args *a);

#endif
