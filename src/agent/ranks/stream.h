/* SPDX-License-Identifier: BSD-3-Clause */
/* One of a rank's two output streams at its agent: a pipe that the agent reads, and its numbering
 * (the mailbox's seqlock and counters, see node/segment.h). What comes goes to the head. All
 * streams of a node of one kind share a window: bytes that were sent and that the head has not
 * passed on yet. While it is full nothing is read, so a slow reader holds the ranks up, as it would
 * without hale. */
#ifndef HALE_AGENT_RANKS_STREAM_H
#define HALE_AGENT_RANKS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "agent/supervisor/node_record.h"
#include "wire/session/loop.h"
#include "node/segment.h"

enum { STREAM_WINDOW = 1 << 20 };

struct stream_window {
	uint64_t out; /* bytes under way */
};

static inline bool stream_window_full(const struct stream_window *w)
{
	return w->out >= STREAM_WINDOW;
}

struct stream {
	struct loop *loop;
	int fd;			   /* the reading end; -1: closed */
	struct loop_source source; /* not in the loop while the window is full */
	struct stream_window *window;
	struct mailbox *mailbox; /* of the rank, in the segment of now */
	uint32_t rank;
	int which; /* 1: stdout, 2: stderr */
	void (*send)(void *arg, const struct stream *s, const void *bytes, size_t len);
	/* What was sent is to be written down, before more is taken. */
	void (*taken)(void *arg);
	void (*closed)(void *arg, const struct stream *s);
	void *arg;
	struct book *book; /* what has left the pipe lies there until it is sent */
	uint64_t *pieces;  /* the newest that was */
};

void stream_init(struct stream *s, struct loop *loop, struct stream_window *window, uint32_t rank,
		 int which);
void stream_fini(struct stream *s);

/* A new process of the rank has its stream at position; fd: the reading end of its pipe, which is
 * the stream's from now on. */
bool stream_open(struct stream *s, int fd, struct mailbox *mailbox, uint64_t position);
/* The same, but of a process that another agent has watched before: what that has counted holds.
 * What it had taken and not sent is sent: stream_recover, once for all. */
bool stream_reopen(struct stream *s, int fd, struct mailbox *mailbox);
void stream_recover(struct stream *s);

/* The window was full and has room again. */
void stream_resume(struct stream *s);

/* Takes what is in the pipe now, as far as the window has room. */
void stream_take(struct stream *s);

/* The rank is gone: takes what is left in the pipe, and closes it. */
void stream_drain(struct stream *s);

#endif
