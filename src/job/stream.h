/* SPDX-License-Identifier: BSD-3-Clause */
/* One of a rank's two output streams: a pipe that the agent reads, its numbering (the mailbox's
 * seqlock and counters, see job/segment.h), and the way to hale's own output.
 *
 * Lines of several ranks are not mixed: the beginning of a line waits for its end. Tagged it waits
 * as long as that takes; otherwise for a moment only, as it may be a question to somebody. */
#ifndef HALE_JOB_STREAM_H
#define HALE_JOB_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "job/history.h"
#include "job/loop.h"
#include "job/outlet.h"
#include "job/segment.h"

enum { STREAM_LINE_MAX = 65536 };

struct stream {
	struct loop *loop;
	int fd;			   /* the reading end; -1: closed */
	struct loop_source source; /* not in the loop while the outlet is full */
	struct outlet *outlet;
	struct mailbox *mailbox; /* of the rank, in the segment of now */
	uint32_t rank;
	int which;	 /* 1: stdout, 2: stderr */
	bool tag, alone; /* alone: the only rank, there is nobody to mix with */
	struct history history;
	char *line; /* the beginning of a line */
	size_t line_len, line_cap;
	struct loop_timer moment;
	void (*differs)(void *arg, struct stream *s); /* told once */
	void *arg;
	bool told;
	bool used; /* something was passed on */
};

void stream_init(struct stream *s, struct loop *loop, struct outlet *outlet, uint32_t rank,
		 int which, bool tag, bool alone);
void stream_fini(struct stream *s);

/* A new process of the rank is about to start with its stream at position: makes the pipe and
 * returns the writing end for it (the caller closes it), or -1. */
int stream_open(struct stream *s, struct mailbox *mailbox, uint64_t position);

/* The outlet was full and has room again. */
void stream_resume(struct stream *s);

/* The rank is gone: takes what is left in the pipe, and closes it. */
void stream_drain(struct stream *s);

/* The rank prints no more: lets go of an unfinished line. */
void stream_end(struct stream *s);

#endif
