/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's stdin. hale's own stdin is read as rank 0 takes it, and what was read is kept until no
 * checkpoint needs it any more, so that a rolled back rank 0 is fed the same bytes again:
 *
 *          forgotten           in the spool             still in hale's stdin
 *   ───────────────────┼──────────────┼──────────────┼─────────────────────▶
 *                  spool_begin       fed         spool_end
 *
 * When stdin is a file, the file itself is the spool.
 */
#ifndef HALE_JOB_FEED_H
#define HALE_JOB_FEED_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "job/loop.h"
#include "job/segment.h"

struct feed {
	struct loop *loop;
	struct loop_source input;  /* hale's stdin, while more of it is wanted */
	struct loop_source output; /* the writing end of rank 0's pipe; .fd -1: closed */
	struct mailbox *mailbox;
	int source; /* hale's stdin; -1: none, or at its end */
	int spool;  /* -1: nothing in it yet */
	bool is_file;
	uint64_t file_start; /* offset in the spool of the byte numbered 0, for a file */
	uint64_t spool_begin, spool_end, fed;
	bool at_end; /* spool_end is the end of all input */
};

/* source: hale's stdin (stays the caller's). */
void feed_init(struct feed *f, struct loop *loop, int source);
void feed_fini(struct feed *f);

/* For a restarted job: the input began in file path at offset start; or bytes were left over in
 * the file rest, and hale's stdin follows. What isn't there any more is not fed. */
void feed_continue_file(struct feed *f, const char *path, uint64_t start);
void feed_continue_rest(struct feed *f, const char *rest_path, uint64_t position);

/* Rank 0 is about to start, with so much of its input consumed: returns the reading end of its
 * stdin (the caller closes it), or -1. */
int feed_open(struct feed *f, struct mailbox *mailbox, uint64_t position);
/* Rank 0 is gone. */
void feed_close(struct feed *f);

/* Nobody will go back behind position. */
void feed_forget(struct feed *f, uint64_t position);
/* Writes what was read but not consumed at position into a new file; *bytes gets how much. A file
 * as stdin needs none of it. */
hale_status_t feed_save_rest(struct feed *f, uint64_t position, const char *path, uint64_t *bytes,
			     struct error *err);
/* hale was in the background of its terminal and is no longer. */
void feed_retry(struct feed *f);

#endif
