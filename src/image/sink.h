/* SPDX-License-Identifier: BSD-3-Clause */
/* A restart in the making, in the process that is about to become another one. Everything that
 * can fail is done while this process is still itself: descriptors are opened out of the way,
 * memory is built in a staging area where neither this process nor the image has any. What
 * remains is a list of system calls that move it into place. */
#ifndef HALE_IMAGE_SINK_H
#define HALE_IMAGE_SINK_H

#include "image/fd/fd.h"
#include "image/read.h"
#include "image/resume.h"

/* One system call of the last step, and what it must return. */
struct sink_op {
	long nr, arg[6], expected;
	long ignore; /* whatever it returns */
};

struct sink {
	struct arena arena;			 /* anywhere: goes with the old memory */
	struct image_file file[IMAGE_CHAIN_MAX]; /* newest first */
	size_t files;
	image_restart_t how;
	struct image_tables t; /* of the newest */
	struct list here;      /* struct map: this process */

	/* | scratch: code, stack, plan, tables | staging: all mappings of the image | */
	uint64_t gap, gap_len;
	struct arena scratch;
	uint64_t *stage; /* per map of the image: where it is being built; 0: not yet */
	int *shared_fd;	 /* per map: the file that shared memory without a name lies in, or -1 */

	struct resume_plan *plan;
	struct content *contents;
	size_t content_count;
	struct fd_restore fds;
	struct list locks; /* struct lock_record, of all images */
	struct list ops;   /* struct sink_op, in scratch */
	int live_fd;	   /* the stream from a running process instead of files; else -1 */
	bool keep_files;   /* a clone: their content belongs to the process that goes on */
};

/* Of one image_sink: an arena, and in it a sink. */
struct sink *sink_create(struct error *err);
void sink_destroy(struct sink *s);

/* sink.c: the steps of a restart, in this order; each fails while this process is still itself. */
hale_status_t sink_check_program(const struct sink *s, struct error *err);
hale_status_t sink_check_kernel(const struct sink *s, const struct kernel_region *then,
				uint64_t vdso_sum, struct error *err);
hale_status_t sink_check_entry(const struct sink *s, struct error *err);
hale_status_t sink_enter_folder(const struct sink *s, struct error *err);
/* With s->contents filled. */
hale_status_t sink_open_descriptors(struct sink *s, struct error *err);
/* Adds lock records of one frame; false: no memory. */
bool sink_add_locks(struct sink *s, const struct lock_record *r, size_t bytes);
/* With s->locks filled. */
hale_status_t sink_make_plan(struct sink *s, struct error *err);
/* The point of no return is its last line. */
hale_status_t sink_become(struct sink *s, struct error *err);

/* What of files and pipes is in the image. */
hale_status_t sink_read_contents(struct image_file *f, struct arena *a, struct content **list,
				 size_t *count, struct error *err);

/* stage.c: builds all mappings and fills them. */
hale_status_t sink_find_gap(struct sink *s, struct error *err);
/* A gap of any length for the scratch arena and `len` bytes after it; false: there is none. */
bool sink_reserve_gap(struct sink *s, uint64_t len);
/* Makes the mapping of m (map number i, or a part of it) at `at`, empty. */
hale_status_t sink_stage_map(struct sink *s, size_t i, const struct map_record *m, uint64_t at,
			     struct error *err);
/* The protection that it will have. */
hale_status_t sink_stage_protect(struct sink *s, struct error *err);
hale_status_t sink_stage(struct sink *s, struct error *err);
/* After that: writes back what shared file mappings can have changed. */
hale_status_t sink_settle_files(struct sink *s, struct error *err);

/* Where the next pages of a frame go. */
struct sink_cursor {
	const uint64_t *run;
	uint32_t runs, at;
	uint64_t page; /* of the run */
};
/* The next stretch of pages that go to one place, at most `room` bytes; 0 at the end. *to: NULL if
 * nobody wants them. */
uint64_t sink_next_stretch(const struct sink *s, struct sink_cursor *c, uint64_t room, char **to,
			   size_t *map);
/* Pages that are as in a fresh mapping, whatever an older image had there. */
void sink_drop_pages(const struct sink *s, const uint64_t *run, uint32_t runs);

/* load.c: pages of all images of the chain into the staging area. */
hale_status_t sink_load(struct sink *s, struct error *err);
/* Where a page of the image is being built; 0: it isn't in the newest image's map. *end gets the
 * end of that mapping, *index its number. */
uint64_t sink_stage_of(const struct sink *s, uint64_t addr, uint64_t *end, size_t *index);

/* switch.c: the list of system calls, and carrying it out. */
hale_status_t sink_plan_switch(struct sink *s, struct error *err);
void sink_switch(struct sink *s) __attribute__((noreturn));

#endif
