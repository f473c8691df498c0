/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's stdin, its agent's side: a pipe that is filled with what the head sends (stdin_spool.h),
 * as the rank reads it; what does not fit yet waits here, at most what the head's window allows. */
#ifndef HALE_AGENT_RANKS_STDIN_SINK_H
#define HALE_AGENT_RANKS_STDIN_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "agent/supervisor/node_record.h"
#include "wire/session/loop.h"
#include "node/segment.h"

struct stdin_sink {
	struct loop *loop;
	struct loop_source pipe; /* the writing end; .fd -1: closed */
	struct mailbox *mailbox;
	unsigned char bytes[STDIN_WINDOW]; /* [begin, end) waits */
	size_t begin, end;
	bool at_end; /* the pipe is closed when all is in it */
	void (*taken)(void *arg, size_t len);
	void (*closed)(void *arg);  /* the rank has closed its stdin */
	void (*dropped)(void *arg); /* its pipe is closed, for whatever reason */
	void *arg;
	struct book *book; /* what is on its way into the pipe */
	uint64_t *feeds;   /* the newest that is there */
};

void stdin_sink_init(struct stdin_sink *i, struct loop *loop);
/* fd: the writing end, which is the stdin sink's from now on. position: bytes consumed so far. */
bool stdin_sink_open(struct stdin_sink *i, int fd, struct mailbox *mailbox, uint64_t position);
/* The same, but of a process that another agent has fed before; what waits is set by the caller. */
bool stdin_sink_reopen(struct stdin_sink *i, int fd, struct mailbox *mailbox);
/* What it had under way is counted. */
void stdin_sink_recover(struct stdin_sink *i);
/* Bytes beyond the window are not taken: false. */
bool stdin_sink_put(struct stdin_sink *i, const void *bytes, size_t len);
void stdin_sink_finish(struct stdin_sink *i);
void stdin_sink_close(struct stdin_sink *i);

#endif
