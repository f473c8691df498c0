/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank does with MPI, as it counts it itself while it runs: its meter, in the node's segment
 * (segment.h), where the agent reads it without disturbing the rank. Agreed between the library in
 * the rank (mpi/profile/, match/) and whoever reads (report/profile.c).
 *
 * Calls are counted all, by one decrement each; the clock is read in few:
 *
 *   a call        ├── short ──┬───────────── long ──────────────┤
 *               entry      it waits in earnest, or moves       exit
 *                          much: noted always
 *
 * The long part of every call is timed. The short part, which ends the call or is at most some
 * microseconds, is timed in one call of `gap` of its class, drawn at random, and counts for all of
 * them. So the cost of both is below what can be measured, and their sum has no bias.
 *
 * The rank alone writes; to `task` its threads do, by atomic additions. `version` is odd while several words that belong together change; messages
 * and `left` change at any time, each by itself.
 */
#ifndef HALE_NODE_METER_H
#define HALE_NODE_METER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/base.h"

/* Classes of calls, as mpiP's formulas need them. */
enum meter_call {
	METER_SEND,	  /* MPI_Send, Bsend, Ssend, Rsend */
	METER_ISEND,	  /* their nonblocking forms, and making persistent ones */
	METER_RECV,	  /* MPI_Recv, Mrecv */
	METER_IRECV,	  /* MPI_Irecv, Imrecv, Recv_init */
	METER_SENDRECV,	  /* MPI_Sendrecv, Sendrecv_replace */
	METER_WAIT,	  /* MPI_Wait, Waitall, Waitany, Waitsome */
	METER_TEST,	  /* MPI_Test and its forms */
	METER_PROBE,	  /* MPI_Probe, Iprobe, Mprobe, Improbe */
	METER_START,	  /* MPI_Start, Startall */
	METER_COLLECTIVE, /* blocking ones whole, of nonblocking ones the beginning */
	METER_OTHER,
	METER_CALLS
};

enum { METER_NAME_MAX = 32 };

/* Messages by size: at most 64 B, 512 B, 4 KiB, 32 KiB, 256 KiB, 2 MiB, 16 MiB, more. */
enum { METER_SIZES = 8, METER_SIZE_FIRST = 64, METER_SIZE_FACTOR = 8 };

/* What libhale_task.so counts (docs/tasks.md, the report), of all threads. */
enum meter_task {
	METER_TASK_MENDED,     /* memory errors; those that can't be mended the head sees */
	METER_TASK_NS,	       /* in tasks */
	METER_TASK_PROTECTED,  /* of it, in protected ones */
	METER_TASK_SERIAL,     /* no task ran */
	METER_TASK_CHECKPOINT, /* copies of tasks' data made */
	METER_TASK_AGAIN,      /* lost executions, and data put back */
	METER_TASK_LOG,	       /* messages kept */
	METER_TASKS
};

struct meter_times {
	_Atomic uint64_t calls;	   /* those up to the last draw: all calls are + gap - left */
	_Atomic uint64_t covered;  /* calls that short_ns stands for */
	_Atomic uint64_t short_ns; /* sum over drawn calls of the short part × gap */
	_Atomic uint64_t long_ns;
	_Atomic uint32_t gap; /* calls from one draw to the next */
};

struct rank_meter {
	_Atomic uint32_t left[METER_CALLS] __attribute__((aligned(CACHE_LINE)));
	_Atomic uint32_t version;
	struct {
		_Atomic uint64_t messages, bytes; /* two-sided ones of the program, sent */
	} sizes[METER_SIZES];
	_Atomic uint64_t collectives, collective_bytes; /* bytes: that this rank gives */
	struct meter_times times[METER_CALLS];
	/* From the end of MPI_Init to the beginning of MPI_Finalize, without the time that
	 * checkpoints and restarts took: CLOCK_MONOTONIC less began_ns while it runs, app_ns (not
	 * 0) when it is over. began_ns 0: not begun, nothing here means anything. */
	_Atomic uint64_t began_ns, app_ns;
	/* of libhale_task.so's threads, which add to it now and then; with and without MPI */
	_Atomic uint64_t task[METER_TASKS];
	/* The MPI function that it waits in, or moves much in; "": none. With several threads, the
	 * last one that began to. */
	char inside[METER_NAME_MAX];
};

/* Adds to a word that only the caller writes: one instruction without a lock, where the compiler
 * would make three of a relaxed load and store. */
#define METER_ADD(word, n) __asm__("addq %1, %0" : "+m"(word) : "er"((uint64_t)(n)) : "cc")

/* Takes one from a 32-bit word that only the caller writes; true: it is 0 now. */
#define METER_COUNT_DOWN(word)                                                                     \
	({                                                                                         \
		bool zero;                                                                         \
		__asm__("subl $1, %0" : "+m"(word), "=@ccz"(zero));                                \
		zero;                                                                              \
	})

static inline void meter_message(struct rank_meter *m, uint64_t bytes)
{
	unsigned i = 0;
	if (bytes > METER_SIZE_FIRST) {
		/* the position of the highest bit of bytes - 1, from 6 on, in steps of three bits
		 */
		i = (60u - (unsigned)__builtin_clzll(bytes - 1)) / 3;
		i = i < METER_SIZES ? i : METER_SIZES - 1;
	}
	METER_ADD(m->sizes[i].messages, 1);
	METER_ADD(m->sizes[i].bytes, bytes);
}

/* Largest size of class i in bytes; the last class has none. */
static inline uint64_t meter_size_limit(unsigned i)
{
	return (uint64_t)METER_SIZE_FIRST << 3 * i;
}

#endif
