/* SPDX-License-Identifier: BSD-3-Clause */
/* The ledger of one task (seed 002, 6.2, Algorithm 1). A task that a memory error strikes begins
 * again while the rest of its process goes on. What it has sent must not leave twice, and what it
 * has received must come again.
 *
 * Events of a task are counted per channel, as messages of a process are counted per flow in
 * deliver.h. A channel is {kind, context, peer, tag}. `committed` counts the events that happened,
 * `current` those that the present execution has reached:
 *
 *   first execution    current == committed: each event happens, both go up, a record keeps it
 *   error              tasklog_again(): current = 0 everywhere
 *   next execution     current < committed: the record answers, nothing happens
 *
 * A receive from any source or with any tag is a channel of its own. Its records, in order, are
 * the anonlist of Algorithm 1: a task that is deterministic by itself asks for them in that order.
 *
 * A log belongs to one execution of one task, so no task ever finds the messages of another one.
 * Memory of records is the log's: chunks that the next task of this thread uses again.
 *
 * May call: base/. Called by mpi/task/. Only the thread that executes the task touches its log,
 * except tasklog_ref_drop().
 */
#ifndef HALE_DELIVER_TASKLOG_H
#define HALE_DELIVER_TASKLOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/base.h"

enum tasklog_kind {
	TASKLOG_SEND,
	TASKLOG_RECEIVE,
	TASKLOG_PROBE,	    /* a probe that has found something */
	TASKLOG_MATCHED,    /* a message that a matched probe has taken */
	TASKLOG_COLLECTIVE, /* peer, tag: 0 */
	TASKLOG_OBJECT,	    /* a communicator that was made from another one */
	TASKLOG_FREED,	    /* an object that was freed; by its address */
	TASKLOG_FOREIGN,    /* the end of a request that the task has not begun; by its address */
	TASKLOG_CALL,	    /* calls that change a window or a request, and nothing of the task */
	TASKLOG_CHOICE,	    /* which of several requests a call has given to the program */
	TASKLOG_INIT,	    /* a persistent request that was made */
	TASKLOG_START,	    /* of a persistent request; by its address */
	TASKLOG_PERSISTENT, /* what a persistent request was before; one event, never replayed */
};

struct tasklog_chunk;

/* One event. The caller's own data and the payload follow in its own struct. */
struct tasklog_record {
	struct tasklog_record *next; /* of its channel */
	struct tasklog_chunk *chunk;
	struct tasklog *log;   /* NULL: the task has ended, others still hold the record */
	_Atomic uint32_t refs; /* requests that point to it */
	size_t bytes;	       /* of payload, as counted against the bound */
};

struct tasklog_channel {
	struct tasklog_channel *next; /* in its bucket */
	enum tasklog_kind kind;
	uint32_t context;
	int32_t peer, tag;
	uint64_t current, committed;
	struct tasklog_record *first, *last;
	struct tasklog_record *at; /* what the next replayed event gets */
};

enum { TASKLOG_BUCKETS = 16 };

struct tasklog {
	struct tasklog *next; /* spare ones of a thread */
	bool used;	      /* something is in it */
	const char *lost;     /* why the task can't be executed again, NULL: it can */
	size_t bytes;
	struct tasklog_channel *bucket[TASKLOG_BUCKETS];
	struct tasklog_chunk *chunks;
	/* of mpi/task/ */
	void *owned;	  /* what is to be freed when the task has ended */
	void *persistent; /* requests to be set back before the next call of another execution */
	bool set_back;	  /* that is to be done */
	bool spoken;	  /* an MPI call has been made */
};

/* All logs of this process. Bytes are those of payloads. */
struct tasklog_totals {
	_Atomic uint64_t bytes, held, peak; /* kept in all, now, at most at one time */
	_Atomic uint64_t replayed, skipped; /* events that came out of logs; sends among them */
	_Atomic uint64_t nanoseconds;	    /* copying into logs */
};
extern struct tasklog_totals tasklog_totals;
extern size_t tasklog_max; /* bytes that the logs of this process may hold together */

/* The log of the task that this thread executes; NULL: none, or one that is not protected. */
extern __thread struct tasklog *tasklog_now __attribute__((tls_model("initial-exec")));

/* A log for a task that begins; NULL: no memory. Spare ones of the thread serve again. */
struct tasklog *tasklog_open(void);
/* The task begins again. */
void tasklog_again(struct tasklog *log);
/* The task has ended: all is forgotten but records that requests still hold. */
void tasklog_close(struct tasklog *log);

/* NULL: no memory; then log->lost is set. */
struct tasklog_channel *tasklog_channel(struct tasklog *log, enum tasklog_kind kind,
					uint32_t context, int32_t peer, int32_t tag);
/* Has the next event of the channel happened in an earlier execution? */
static inline bool tasklog_replays(const struct tasklog_channel *c)
{
	return c->current < c->committed;
}
/* What a channel's next event left; only if it replays. NULL: it was counted without a record. */
struct tasklog_record *tasklog_replay(struct tasklog_channel *c);
/* What it will leave, without passing it. */
static inline struct tasklog_record *tasklog_peek(const struct tasklog_channel *c)
{
	return c->at;
}
/* An event has happened that leaves no record: a send that has left. */
void tasklog_count(struct tasklog_channel *c);
/* An event has happened, or has begun. A record of `size` bytes, struct tasklog_record first and
 * the rest zeroed up to the payload, whose `payload` bytes are the end of it. NULL: the bound or
 * the system's memory is reached; then log->lost is set, and the event is counted. Channels have
 * records for all of their events or for none. */
struct tasklog_record *tasklog_record(struct tasklog *log, struct tasklog_channel *c, size_t size,
				      size_t payload);
/* The payload turned out shorter. */
void tasklog_shrink(struct tasklog_record *r, size_t payload);

/* Requests that point to a record keep it alive. */
void tasklog_ref_add(struct tasklog_record *r);
void tasklog_ref_drop(struct tasklog_record *r);

#endif
