/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of rma/ share. */
#ifndef HALE_RMA_INTERNAL_H
#define HALE_RMA_INTERNAL_H

#include "ckpt/guard.h"
#include "ckpt/rank.h"
#include "node/rma_layout.h"
#include "rma/rma.h"

/* Towards one member. */
struct rma_peer {
	struct rma_part part;
	char *seen; /* shared: its part in this process's addresses; NULL: not mapped yet */
	size_t seen_bytes;
	void *seen_map;	   /* what munmap takes */
	uint32_t pending;  /* far operations that aren't over here */
	bool unflushed;	   /* far operations that it hasn't confirmed */
	bool granted;	   /* a far lock has come */
	bool started;	   /* in the access epoch that start began */
	bool busy;	   /* a large message of its is being received: later ones wait */
	uint8_t lock;	   /* MPI_LOCK_… that we hold there, or 0 */
	bool lock_checked; /* it is a real one (no MPI_MODE_NOCHECK) */
	uint32_t posts;	   /* POST that came and no start has used */
	uint32_t asked, confirmed;
	int fault;     /* of a far operation of ours there */
	int its_fault; /* of one of its here: told with the next confirmation */
};

extern struct rma {
	struct win *windows;
	uint32_t rank; /* in the job */
	bool ready;
	bool copies; /* copies between processes are allowed, as far as is known */
	bool fresh_checked;
	int memory; /* memory file of our shared parts; -1: none */
	uint64_t memory_inode;
	uint64_t memory_end; /* what of it has been given away */
	uint64_t slots[RMA_SLOTS / 64];
} rma;

int rma_ready(void); /* before the first window */

static inline struct rma_room *rma_room_of(uint32_t world)
{
	struct segment *s = link_self()->segment;
	return (struct rma_room *)((char *)s + s->rma_offset) + world;
}

static inline uint32_t rma_world(const struct win *w, int member)
{
	return (uint32_t)w->comm->world[member];
}

static inline struct rma_words *rma_words_of(const struct win *w, int member)
{
	return &rma_room_of(rma_world(w, member))->slot[w->peer[member].part.slot];
}

static inline bool rma_is_open(const struct win *w, int member)
{
	return atomic_load_explicit(&rma_room_of(rma_world(w, member))->gate,
				    memory_order_acquire) != 0;
}

static inline bool rma_is_here(const struct win *w, int member)
{
	return segment_here(link_self()->segment, rma_world(w, member));
}

/* ---- reach.c: how a member is reached just now ---- */
enum rma_way { RMA_WAY_DIRECT, RMA_WAY_COPY, RMA_WAY_FAR };
/* Waits while that member is around its image. DIRECT: its part can be addressed from here;
 * *base is where it begins. A class below zero can't be: errors are *error. */
enum rma_way rma_reach(struct win *w, int member, int *error);
/* The member's address as this process sees it. */
static inline char *rma_seen(const struct win *w, int member, uint64_t address)
{
	const struct rma_peer *p = &w->peer[member];
	if (member == w->comm->rank)
		return (char *)(uintptr_t)address;
	return p->seen + (address - p->part.base);
}

/* ---- memory.c ---- */
int rma_memory_make(size_t bytes, void **at, uint64_t *offset);
void rma_memory_drop(void *at, size_t bytes, uint64_t offset);
/* Maps bytes of that rank's memory file; `at` NULL: wherever there is room. NULL: not possible. */
void *rma_memory_see(uint32_t world, uint64_t offset, size_t bytes, void *at);
void rma_memory_unsee(void *at, size_t bytes);
void rma_memory_publish(void);
void rma_memory_resume(void); /* in a new segment, perhaps a new process */

/* ---- direct.c, copy.c: near operations ---- */
int rma_direct(struct rma_call *c, uint64_t address);
int rma_copy(struct rma_call *c, uint64_t address, bool *refused);
/* One update of memory at `at`, held apart from all others by the window part's words. */
struct rma_update {
	const struct op *op;
	basic_t basic;
	bool swap; /* write origin where the memory equals compare */
	const void *compare;
	struct rma_span origin, result; /* result.type NULL: not wanted */
	size_t bytes;			/* packed */
};
enum { RMA_CHUNK = 16320 }; /* a multiple of all sizes of basic elements */
/* The basic element of calls that update. */
int rma_basic(const struct rma_call *c, basic_t *basic);
void rma_update_direct(const struct rma_update *u, const struct rma_part *part,
		       struct rma_words *words, char *at, size_t count, struct datatype *type);
/* target = target op origin, for packed elements. */
void rma_combine(const struct rma_update *u, const char *origin, char *target, size_t bytes);
void rma_hold(struct rma_words *words);
void rma_release(struct rma_words *words);

/* ---- far.c: messages to the target; serve.c: what the target does with them ---- */
enum rma_am_kind {
	RMA_AM_PUT = 1,
	RMA_AM_GET,
	RMA_AM_UPDATE,
	RMA_AM_LOCK,
	RMA_AM_UNLOCK,
	RMA_AM_FLUSH,
	RMA_AM_POST,
	RMA_AM_COMPLETE,
	RMA_AM_CONFIRM,
	RMA_AM_GRANT,
};
enum { RMA_INLINE_MAX = 4096, RMA_TAG_AM = 0 };

/* | struct rma_am | layout, numbers of 64 bits | payload, unless data_tag | */
struct rma_am {
	uint8_t kind; /* enum rma_am_kind */
	uint8_t op;   /* place in the table of operations */
	uint8_t swap;
	uint8_t type; /* LOCK */
	uint16_t basic, element;
	int32_t error;
	uint64_t address, bytes;
	uint32_t data_tag, reply_tag; /* of messages with data and with the result; 0: none */
	uint32_t numbers;	      /* of the layout */
	uint32_t reserved;
};

int rma_far(struct rma_call *c, uint64_t address, struct request **request);
int rma_tell(struct win *w, int member, struct rma_am *am);
int rma_confirm_ask(struct win *w, int member, enum rma_am_kind kind);
int rma_confirm_wait(struct win *w, int member);
int rma_serve(void); /* progress hook */
bool rma_inside(const struct win *w, uint64_t address, size_t low, size_t high);
const struct op *rma_op_at(unsigned i);
unsigned rma_op_place(const struct op *op);

/* Messages of ours that are under way, until they are over. */
struct rma_pending {
	struct rma_pending *next;
	int member; /* whose pending count it is in; -1: nobody's */
	struct request *send, *data, *reply;
	struct request *user;  /* to complete */
	struct datatype *type; /* to release */
	void *memory, *copy;   /* to free */
	size_t expected;       /* bytes of the reply */
	int error;
};
struct rma_pending *rma_pending_add(struct win *w, int member);
int rma_pending_sweep(struct win *w);

/* ---- lock.c ---- */
/* Takes or gives back a lock of a part on this node. False: not now. */
bool rma_lock_try(struct rma_words *words, int type);
void rma_lock_give(struct win *w, struct rma_words *words, int type);

/* ---- timer.c ---- */
void rma_timer_look(void); /* windows have come, gone, or moved */
void rma_timer_stop(void);

void rma_checkpoint_init(void);

#endif
