/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's stdin, its agent's side: a pipe that is filled with what the head sends (feed.h), as the
 * rank reads it; what does not fit yet waits here, at most what the head's window allows. */
#ifndef HALE_JOB_INTAKE_H
#define HALE_JOB_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "job/feed.h"
#include "job/loop.h"
#include "job/segment.h"

struct intake {
	struct loop *loop;
	struct loop_source pipe; /* the writing end; .fd -1: closed */
	struct mailbox *mailbox;
	unsigned char bytes[FEED_WINDOW]; /* [begin, end) waits */
	size_t begin, end;
	bool at_end; /* the pipe is closed when all is in it */
	void (*taken)(void *arg, size_t len);
	void (*closed)(void *arg); /* the rank has closed its stdin */
	void *arg;
};

void intake_init(struct intake *i, struct loop *loop);
/* Returns the reading end (the caller closes it), or -1. position: bytes consumed so far. */
int intake_open(struct intake *i, struct mailbox *mailbox, uint64_t position);
/* Bytes beyond the window are not taken: false. */
bool intake_put(struct intake *i, const void *bytes, size_t len);
void intake_finish(struct intake *i);
void intake_close(struct intake *i);

#endif
