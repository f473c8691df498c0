/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading image files. Nothing in a file is believed: every length, count, address and offset is
 * checked before it is used, every table and all data against their checksums. No malloc, so that
 * a process that is about to be exchanged can use it too. */
#ifndef HALE_IMAGE_READ_H
#define HALE_IMAGE_READ_H

#include "image/engine.h"

struct frame_at {
	uint64_t at;
	struct frame frame;
	const void *table; /* NULL until image_file_table */
};

struct image_file {
	const char *path;
	int fd;
	uint64_t len;
	struct arena *arena;
	struct image_header header;
	const char *note;
	struct list frames; /* struct frame_at, in order; the first is HEADER */
	uint64_t checksum;
	bool live; /* not a file: the stream from a running process (live.h) */
};

/* An arena for the reading side, and its failure. */
hale_status_t image_reader_arena(struct arena *a, struct error *err);
/* Opens an image and walks over all its frames. */
hale_status_t image_file_open(struct image_file *f, struct arena *a, const char *path,
			      struct error *err);
void image_file_close(struct image_file *f);
/* The checked table of a frame. */
hale_status_t image_file_table(struct image_file *f, struct frame_at *frame, struct error *err);
/* What image_file_data needs beside raw: room for compressed data, and for the state of what
 * decompresses them, which may not come from malloc: several workers, of which libc does not know,
 * read at the same time. NULL: no memory. */
void *image_packed_room(struct arena *a);
/* Reads a frame's data and decompresses them into raw (frame.raw_len bytes). packed: from
 * image_packed_room, NULL if the frame is not compressed. Async-signal-safe; thread-safe, each
 * thread with a room of its own. */
hale_status_t image_file_data(const struct image_file *f, const struct frame_at *frame, void *raw,
			      void *packed, struct error *err);
/* The first frame of a kind, with its table; NULL with err when it is missing or damaged. */
struct frame_at *image_file_find(struct image_file *f, enum frame_kind kind, struct error *err);

/* Tables, parsed. They point into the file's arena. */
struct image_tables {
	const struct process_record *process;
	const char *cwd;
	const void *auxv;
	const struct signals_record *signals;
	const struct timer_record *timers;
	size_t timer_count;
	const struct thread_record *threads;
	size_t thread_count;
	const struct map_record *maps;
	size_t map_count;
	const char *map_text;
	size_t map_text_len;
	const struct fd_record *fds;
	size_t fd_count;
	const char *fd_text;
	size_t fd_text_len;
	const struct sched_record *scheduling;
	size_t scheduling_count;
	const struct file_lock_record *file_locks;
	size_t file_lock_count;
	const struct owner_record *owners;
	size_t owner_count;
	const struct range *guards;
	size_t guard_count;
	const struct advice_record *advice;
	size_t advice_count;
};
/* Of them only the maps. */
hale_status_t image_file_maps(struct image_file *f, struct image_tables *t, struct error *err);
hale_status_t image_file_tables(struct image_file *f, struct image_tables *t, struct error *err);

/* Checks the runs of a PAGES or DROPS frame whose table is there. */
hale_status_t image_file_check_runs(const struct image_file *f, const struct frame_at *frame,
				    struct error *err);
/* Do files[0..count), newest first, make up one state: same process, each the base of the one
 * before it, the last one full? */
hale_status_t image_chain_check(const struct image_file *files, size_t count, struct error *err);
hale_status_t image_file_corrupt(const struct image_file *f, const char *what, struct error *err);

#endif
