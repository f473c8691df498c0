/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing an image file, frame by frame; several threads may write pages at once. */
#ifndef HALE_IMAGE_STREAM_H
#define HALE_IMAGE_STREAM_H

#include <errno.h>
#include <poll.h>

#include "image/engine.h"
#include "image/hash.h"
#include "image/live/live_wire.h"

struct image_stream {
	int fd;
	struct arena *arena;
	_Atomic uint64_t end;  /* where the next frame goes */
	_Atomic int error;     /* first -errno of any writer */
	int32_t parent;	       /* while that process lives: else -ESRCH; 0: does not matter */
	int root;	       /* readable when the writing shall end: then -ESRCH; -1: none */
	_Atomic uint32_t lock; /* of arena and notes */
	struct list notes;     /* struct frame_note, of every frame but HEADER */
	uint64_t header_len;
	void *header_page;
	uint64_t checksum; /* after image_stream_finish */
	/* a live image: frames go out in order, one writer; NULL: a file */
	const struct live_round *live;
	XXH3_state_t *order; /* of the heads that went out */
	uint64_t frames, sent;
};

/* A file that is open for writing and empty. note_len: of the note that image_stream_finish gets.
 */
bool image_stream_init(struct image_stream *s, struct arena *a, int fd, size_t note_len);
bool image_stream_init_live(struct image_stream *s, struct arena *a, const struct live_round *live);
void image_stream_fail(struct image_stream *s, int error);
void image_stream_lock(struct image_stream *s);
void image_stream_unlock(struct image_stream *s);
/* Also notices that the captured process has died: an image of it must not become complete. */
static inline bool image_stream_orphaned(struct image_stream *s)
{
	struct pollfd ended = {.fd = s->root, .events = POLLIN};
	if ((s->parent && sys(SYS_getppid) != s->parent) ||
	    (s->root >= 0 && sys(SYS_poll, &ended, 1, 0) > 0))
		image_stream_fail(s, -ESRCH);
	return atomic_load(&s->error) != 0;
}
static inline bool image_stream_failed(struct image_stream *s)
{
	return atomic_load_explicit(&s->error, memory_order_relaxed) != 0;
}
/* A frame that is in memory whole. */
void image_stream_put(struct image_stream *s, enum frame_kind kind, uint32_t count,
		      const void *table, size_t table_len, const void *data, size_t data_len);
/* Parts: claims a place for a frame whose lengths are known; the caller writes the data from
 * frame_data_at on, then calls image_stream_seal with data_sum filled in. */
uint64_t image_stream_claim(struct image_stream *s, struct frame *f);
void image_stream_seal(struct image_stream *s, struct frame *f, uint64_t at, const void *table);
/* Of a live image, instead of claim and seal: data is iov[2 … 2 + vecs), data_len and data_sum are
 * filled in. */
void image_stream_send(struct image_stream *s, struct frame *f, const void *table,
		       struct iovec *iov, int vecs);
/* The HEADER, last of all: from now on this is an image. Fills lengths and counts in header. */
void image_stream_finish(struct image_stream *s, struct image_header *header, const void *note);

/* Pages, by all cores that this process may use. */
struct pages_result {
	uint64_t saved, zero, same;
	struct list drops; /* uint64_t runs: zero pages, found only by looking */
	struct list locks; /* struct lock_record */
};
struct pages_params {
	const struct run *runs;
	size_t count;
	uint64_t pages;
	image_compress_t compress;
	const int32_t *tids; /* sorted; their locks are looked for */
	size_t tid_count;
	unsigned workers;
	bool want_drops;     /* report zero pages as drops */
	struct offer *offer; /* pages that the sink has already (live/live_offer.h); NULL: none */
	bool moving;	     /* pages can change meanwhile: copy each before it is summed up */
};
bool pages_write(struct image_stream *s, const struct pages_params *p, struct pages_result *result);

#endif
