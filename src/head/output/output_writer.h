/* SPDX-License-Identifier: BSD-3-Clause */
/* hale's own stdout or stderr, as the place where the ranks' output goes. A reader that is slow
 * holds the ranks up, as it would without hale; it never blocks the event loop. One that went
 * away is told of once, and what would go to it is dropped; the owner may end the job (closed). */
#ifndef HALE_HEAD_OUTPUT_OUTPUT_WRITER_H
#define HALE_HEAD_OUTPUT_OUTPUT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "node/job.h"
#include "wire/session/loop.h"

enum { OUTLET_FULL = 1 << 20 };

struct output_writer {
	int fd;
	const char *name; /* "stdout" */
	struct loop *loop;
	struct loop_source source; /* waits for room while there is something to write */
	struct loop_timer again;   /* … where nobody can be told of it */
	bool stuck;		   /* what polls as writable has taken nothing */
	bool full;		   /* … as there is no room on its disk: that is waited for */
	bool lost;		   /* what was to be in a file is not, and nobody wanted that */
	int terminal;		   /* opened by ourselves; -1: it is none, or can't be */
	bool plain_file;	   /* never makes us wait */
	bool pipe;		   /* or a socket */
	bool broken;
	char *bytes; /* [begin, end) waits */
	size_t begin, end, cap;
	void (*drained)(void *arg); /* it was full and has room again */
	void *arg;
	bool was_full;
	closed_output_t policy; /* set behind output_writer_init */
	/* Nobody reads any more, and the job is to end. NULL: dropping is all that happens. */
	void (*closed)(void *arg, const struct output_writer *o);
	/* Where another head may come after this one: what is printed is handed to an output
	 * daemon, in packets of the head of a frame and its bytes; only what output_position.c
	 * writes. */
	struct output_daemon *output_daemon; /* NULL: written by ourselves */
	int which;			     /* 1: stdout, 2: stderr */
	/* So much of a rank's stream will be printed, whatever becomes of this process. */
	void (*passed)(void *arg, int which, uint32_t rank, uint64_t position);
	void (*output_daemon_gone)(void *arg); /* it is to be replaced, or the head ends */
};

struct output_writer_frame {
	uint64_t position;
	uint32_t rank, len;
};

void output_writer_init(struct output_writer *o, struct loop *loop, int fd, const char *name,
			void (*drained)(void *arg), void *arg);
void output_writer_fini(struct output_writer *o);

/* Takes all of it. The caller stops producing while output_writer_full(). */
void output_writer_write(struct output_writer *o, const void *bytes, size_t len);
/* Bytes of a rank; position: of its stream after them. */
void output_writer_write_of(struct output_writer *o, uint32_t rank, uint64_t position,
			    const void *bytes, size_t len);
/* From now on (nothing was written yet) through an output daemon, which stays the caller's; passed
 * and output_daemon_gone have been set. */
void output_writer_keep(struct output_writer *o, struct output_daemon *output_daemon, int which);
/* There is another output daemon. */
void output_writer_keep_on(struct output_writer *o);
bool output_writer_full(struct output_writer *o);
bool output_writer_empty(const struct output_writer *o);
/* Waits until everything is written, or the reader is gone. A full disk gets 10 s. */
void output_writer_flush(struct output_writer *o);

#endif
