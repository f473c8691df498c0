/* SPDX-License-Identifier: BSD-3-Clause */
/* What of an agent outlives it: memory that it shares with its supervisor, in which it writes down
 * after each turn of its loop what a successor needs (docs/nodes.md, 'An agent is replaced'). It is
 * mapped before the first agent is forked, so all of them have it at the same address.
 *
 * The state of a turn is written into the half that does not count, and counts with one store. What
 * a turn does to others comes before that store if doing it twice does no harm, and after it if
 * not doing it does none. Bytes and packets that are taken from somewhere can't be taken twice:
 * they lie here before they count as taken, with a number that is above the state's until the turn
 * that they cause is written down. */
#ifndef HALE_AGENT_SUPERVISOR_NODE_RECORD_H
#define HALE_AGENT_SUPERVISOR_NODE_RECORD_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "agent/copier/copier.h"
#include "node/job.h"
#include "wire/lease/lease.h"
#include "wire/message/message.h"
#include "node/proto.h"
#include "store/store.h"

enum {
	BOOK_PIECE = 65536,	      /* bytes that go through a stage at once */
	BOOK_KEPT = 2 << 20,	      /* of each stream, for another head (agent_kept.c) */
	BOOK_VIEWS = 3,		      /* of now, and before and after a migration */
	BOOK_TEXTS = 2 * MESSAGE_MAX, /* room for SETUP, and for a program with its environment */
	BOOK_ORDERS = 4 * JOB_RANKS_MAX,
	ADDRESS_MAX = 108, /* of a name that processes of this node listen at, with its zero */
};

/* A process that the supervisor has launched. */
struct book_child {
	_Atomic int32_t group; /* 0: none */
	_Atomic int32_t pid;   /* 0: none yet */
	_Atomic uint32_t ended;
	int32_t status;	 /* waitpid's, once it has ended */
	uint64_t number; /* of the message that it was launched for */
	bool stood;	 /* it was not launched for that, but stood ready */
};

enum book_rank_flag {
	BOOK_MPI = 1,
	BOOK_INITIALIZED = 2,
	BOOK_FINALIZED = 4,
	BOOK_MET = 8,
	BOOK_MOVED = 16,
	BOOK_HALTED = 32,
	BOOK_RESUMED = 64,
	BOOK_WRITTEN = 128,
	BOOK_SPAWNED = 256,
	BOOK_ENDED = 512,
	BOOK_LATE = 1024,
	BOOK_ABORTED = 2048,
	BOOK_OUT = 4096,   /* its stdout is open */
	BOOK_ERR = 8192,   /* its stderr */
	BOOK_MADE = 16384, /* there may be a file of it here (--via-files) */
	BOOK_STOPPED = 32768,
};

/* Output that waits for another head's asking: position p lies at (p - origin) % BOOK_KEPT. */
struct book_kept {
	uint64_t first, last, origin;
};

struct book_rank {
	int32_t pid, group, member, status, abort_code;
	uint32_t flags; /* enum book_rank_flag */
	uint64_t conn;	/* its connection's number; 0: none */
	struct book_kept kept[2];
	uint64_t position[3]; /* where the streams of a copy are to stand */
};

struct book_view {
	uint32_t generation; /* 0: no layout */
	uint32_t node_of[JOB_RANKS_MAX];
};

/* What an agent was about to do again and again until it comes to an end. */
enum book_waiting { BOOK_NOTHING, BOOK_CLEARING, BOOK_CANCELLING, BOOK_LEAVING };

struct book_state {
	uint64_t turns, frames, packets, pieces, feeds;
	uint64_t in_begin, out_tail; /* positions in the rings */
	int32_t exit_status;
	uint32_t ready;	   /* the job is known */
	uint32_t heard;	   /* there is a session */
	uint64_t sessions; /* so far; its number */
	uint32_t waiting, clear_id;
	uint32_t epoch, last_id, headless, frozen, paused, resuming;
	uint64_t resume_from;
	double alone_until; /* clock_seconds(); 0: it does not run */
	struct lease_held lease;
	int32_t view, coming, old; /* of book.view; -1: none */
	uint32_t move, stop_id, went;
	char move_folder[PATH_MAX];
	uint32_t ckpt, ckpt_local;
	char ckpt_folder[STORE_FOLDER_MAX + 16];
	uint64_t window[2];
	uint32_t input_open, input_ended, input_len;
	unsigned char input[STDIN_WINDOW];
	struct book_rank rank[JOB_RANKS_MAX];
};

/* Bytes of a rank's stream that have left its pipe. */
struct book_piece {
	_Atomic uint64_t number;
	uint32_t rank, which;
	uint64_t base;	      /* the mailbox's counter before */
	_Atomic uint64_t len; /* 0: not known yet: what is in the pipe behind */
	unsigned char bytes[BOOK_PIECE];
};

/* Bytes on their way into rank 0's stdin. */
struct book_input {
	_Atomic uint64_t number;
	uint64_t base;
	_Atomic uint64_t len;
	_Atomic uint32_t known; /* moved holds */
	uint64_t moved;
};

/* A packet of a rank. */
struct book_packet {
	_Atomic uint64_t number;
	uint64_t conn;
	union proto_packet packet;
};

/* An order for the copier that is not answered. */
struct book_order {
	uint64_t born, dead; /* the numbers of those turns; 0: none, and not yet */
	struct copier_order order;
};

/* A queue of bytes; positions only grow, and what lies between two of them is contiguous, since the
 * memory is mapped twice. */
struct book_ring {
	unsigned char *bytes;
	uint64_t size;
	_Atomic uint64_t begin, tail; /* begin: of the one out, tail: of the one in */
	_Atomic uint64_t to;	      /* in: what is in the stage goes up to there */
	/* out: what is being moved into the stage: from begin, with so many bytes in it before */
	_Atomic uint32_t moving;
	uint64_t moving_from, moving_had;
};

static inline unsigned char *book_ring_at(const struct book_ring *r, uint64_t position)
{
	return r->bytes + position % r->size;
}

struct book {
	/* the supervisor's */
	_Atomic uint64_t deadline_ns; /* of lease_clock(); 0: there is no lease */
	_Atomic uint32_t over;	      /* the lease has run out: nothing is started any more */
	_Atomic uint32_t leased;      /* deadlines will be set */
	_Atomic uint32_t adopt;	      /* an agent that dies gets a successor */
	_Atomic uint32_t count;	      /* of ranks */
	_Atomic uint32_t standing;    /* processes that wait for an order (supervisor_standby.c) */
	_Atomic int32_t supervisor;   /* its process */
	char job[JOB_ID_MAX];	      /* the agent's; "": not known yet */
	/* the agent's: what these execute, and what its files were when they were started */
	uint64_t stand_identity;
	char stand_program[PATH_MAX];
	struct book_child child[JOB_RANKS_MAX];
	/* the stages: pipes that are empty but for what is under way */
	int in_stage[2], out_stage[2], piece_stage[2], input_stage[2];
	struct book_ring in, out;
	struct book_piece piece;
	struct book_input input;
	struct book_packet packet;
	struct book_view views[BOOK_VIEWS];
	uint32_t machines;
	uint32_t machine_of[JOB_NODES_MAX];
	char address[ADDRESS_MAX], token[24];
	uint64_t setup_len;
	unsigned char setup[BOOK_TEXTS];
	unsigned char desk[BOOK_TEXTS]; /* what is to be launched */
	uint32_t orders_used;
	struct book_order orders[BOOK_ORDERS];
	char copies_at[COPIES_ADDRESS_MAX]; /* of the node's copier */
	int32_t copier;			    /* its process; 0: none yet */
	_Atomic uint32_t current;
	struct book_state half[2];
};

/* In memory that children share; NULL with a sentence. */
struct book *book_create(struct error *err);

static inline const struct book_state *book_now(const struct book *b)
{
	return &b->half[atomic_load(&b->current)];
}

/* Bytes in a stage. */
size_t book_staged(const int stage[2]);
/* Takes what is in a stage out of it, into bytes or to nowhere (NULL). */
void book_unstage(const int stage[2], void *bytes, size_t len);

#endif
