/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's stdin, the head's side. hale's own stdin is read as rank 0 takes it, and what was read
 * is kept until no checkpoint needs it any more, so that a rolled back rank 0 is fed the same bytes
 * again. Its agent (stdin_sink.h) lets so much come as the window allows.
 *
 *          forgotten           in the spool             still in hale's stdin
 *   ───────────────────┼──────────────┼──────────────┼─────────────────────▶
 *                  spool_begin       fed         spool_end
 *
 * When stdin is a file, the file itself is the spool.
 */
#ifndef HALE_HEAD_OUTPUT_STDIN_SPOOL_H
#define HALE_HEAD_OUTPUT_STDIN_SPOOL_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "wire/session/loop.h"

struct stdin_spool {
	struct loop *loop;
	struct loop_source input; /* hale's stdin, while more of it is wanted */
	bool open;		  /* rank 0 takes input */
	size_t window;		  /* bytes that may be sent */
	void (*send)(void *arg, const void *bytes, size_t len);
	void (*send_end)(void *arg);
	void *arg;
	int source; /* hale's stdin; -1: none, or at its end */
	int spool;  /* -1: nothing in it yet */
	bool is_file;
	uint64_t file_start; /* offset in the spool of the byte numbered 0, for a file */
	uint64_t spool_begin, spool_end, fed;
	char keep[512]; /* where the spool is to be; "": a file without a name */
	bool at_end;	/* spool_end is the end of all input */
	char *rest;	/* what was read and has found no room in the spool yet */
	size_t rest_len;
	struct loop_timer again;
};

/* source: hale's stdin (stays the caller's). send, send_end and arg are the caller's to set. */
void stdin_spool_init(struct stdin_spool *f, struct loop *loop, int source);
void stdin_spool_fini(struct stdin_spool *f);

/* For a restarted job: the input began in file path at offset start; or bytes were left over in
 * the file rest, and hale's stdin follows. What isn't there any more is not fed. */
void stdin_spool_continue_file(struct stdin_spool *f, const char *path, uint64_t start);
void stdin_spool_continue_rest(struct stdin_spool *f, const char *rest_path, uint64_t position);

/* Keeps what is read in that file, which another head can open. */
void stdin_spool_keep_in(struct stdin_spool *f, const char *path);
/* Another head has read so far into that file; nothing more can be read if it was at the end. Else
 * hale's own stdin follows. */
void stdin_spool_continue_spool(struct stdin_spool *f, const char *path, uint64_t begin,
				bool ended);
/* A new head takes over while rank 0 runs. `position` bytes of input have reached rank 0's node;
 * the last `waiting` of them are not in its pipe yet. open: rank 0 takes more. */
void stdin_spool_go_on(struct stdin_spool *f, uint64_t position, size_t waiting, bool open);
/* Rank 0 is about to start, with so much of its input consumed. */
void stdin_spool_open(struct stdin_spool *f, uint64_t position);
/* So many bytes more are in its pipe. */
void stdin_spool_taken(struct stdin_spool *f, size_t len);
/* Rank 0 is gone, or has closed its stdin. */
void stdin_spool_close(struct stdin_spool *f);

/* Nobody will go back behind position. */
void stdin_spool_forget(struct stdin_spool *f, uint64_t position);
/* Writes what was read but not consumed at position into a new file; *bytes gets how much. A file
 * as stdin needs none of it. */
hale_status_t stdin_spool_save_rest(struct stdin_spool *f, uint64_t position, const char *path,
				    uint64_t *bytes, struct error *err);
/* hale was in the background of its terminal and is no longer. */
void stdin_spool_retry(struct stdin_spool *f);

#endif
