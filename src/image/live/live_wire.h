/* SPDX-License-Identifier: BSD-3-Clause */
/* The stream between a running process and the copy of it that is being built: the frames of image
 * files (frame.h) in the order in which they are sent, without any fill, and a few of its own.
 *
 *   source → sink   BEGIN  ( ROUND  frames  END )…  the last round's frames  END  COMMIT
 *   sink → source   ACCEPT  ( OFFER… )  WHOLE  RUNS;   at any time REFUSED
 *
 * A round that isn't the last holds MAPS, PAGES, LOCKS, DROPS; the last one all that a file holds
 * but HEADER. END carries the number of its round's frames and a checksum over all of their heads,
 * so that none can be missing. docs/migration.md says who may die when. */
#ifndef HALE_IMAGE_LIVE_WIRE_H
#define HALE_IMAGE_LIVE_WIRE_H

#include "image/frame.h"

#define LIVE_MAGIC 0x4556494c454c4148ull /* "HALELIVE" */

enum { LIVE_VERSION = 2, LIVE_TEXT = 480, LIVE_HAS_SOME = 1 };

/* Kinds of frames that no file has. */
enum live_kind {
	LIVE_BEGIN = 64, /* struct live_begin; the first */
	LIVE_ROUND,	 /* struct live_round_record: one begins */
	LIVE_END,	 /* struct live_end, note: a round is complete */
	/* to the source, after the maps of round 0: uint64_t[]: runs; data: 16 bytes for each page
	 * of them (live_offer.h). One without runs is the last; uint64_t: pages in all */
	LIVE_OFFER,
	/* struct live_word, all that follow */
	LIVE_COMMIT,  /* to the sink: you are the process now. Sent once, never taken back */
	LIVE_ACCEPT,  /* to the source: send; code LIVE_HAS_SOME: and hear what I have already */
	LIVE_WHOLE,   /* all is here and in place; waits for COMMIT */
	LIVE_RUNS,    /* the copy is the process; not an instruction of the program has run yet */
	LIVE_REFUSED, /* there will be no copy: code and text say why */
	LIVE_DEAD,    /* from who started the sink: it has ended, and never said RUNS */
	LIVE_KINDS_END,
};

struct live_begin {
	uint64_t magic;
	uint32_t version, then; /* enum live_then */
	uint64_t resident;	/* bytes of memory that the copy will need */
	uint64_t vdso_sum;
	struct kernel_region region[PROCESS_REGIONS];
	struct image_header header; /* identity, program, processor */
};

struct live_round_record {
	uint32_t round;	      /* from 0 on */
	uint32_t incremental; /* 0: forget all pages of earlier rounds */
	uint32_t last;
	uint32_t reserved;
};

struct live_end {
	uint64_t frames;   /* of this round, without ROUND and END */
	uint64_t checksum; /* XXH3-64 of their struct frames, in order */
	uint64_t pages;
	uint32_t round, note_len; /* the note follows, in the last round */
};

struct live_word {
	int32_t code; /* hale_status_t */
	uint32_t reserved;
	char text[LIVE_TEXT];
};

/* A round in the making, for the files that write it. */
struct live_round {
	int fd;
	uint32_t round, then;
	bool last;
	bool answers; /* somebody is at the other end */
	uint64_t wait_ns;
};

/* All of these: 0 or -errno; -EPIPE: the other side is gone. No signal is raised. */

/* A stream socket: somebody hears and answers. */
bool live_answers(int fd);
/* Everything in iov, which is changed. */
int live_write(int fd, struct iovec *iov, int count);
/* A small frame. */
int live_send(int fd, enum live_kind kind, const void *table, size_t len);
int live_say(int fd, enum live_kind kind, hale_status_t code, const char *text);
/* len bytes. deadline_ns: on base/clock.h's clock, 0: none; -ETIMEDOUT when it is over. */
int live_read(int fd, void *buf, size_t len, uint64_t deadline_ns);
/* The next word. Returns its kind, or -errno (-EPROTO: that isn't one). */
int live_listen(int fd, struct live_word *word, uint64_t deadline_ns);

/* Fills in magic and checksums but the data's. */
void live_sign(struct frame *f, const void *table);
/* Is that the head of a frame that may come? */
bool live_head_good(const struct frame *f);

#endif
