/* SPDX-License-Identifier: BSD-3-Clause */
/* A restart in the making, in the process that is about to become another one. Everything that
 * can fail is done while this process is still itself: descriptors are opened out of the way,
 * memory is built in a staging area where neither this process nor the image has any. What
 * remains is a list of system calls that move it into place. */
#ifndef HALE_IMAGE_SINK_H
#define HALE_IMAGE_SINK_H

#include "image/fd.h"
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
	uint64_t *stage; /* per map of the image: where it is being built */
	int *shared_fd;	 /* per map: the file that shared memory without a name lies in, or -1 */

	struct resume_plan *plan;
	struct content *contents;
	size_t content_count;
	struct fd_restore fds;
	struct list ops; /* struct sink_op, in scratch */
};

/* stage.c: builds all mappings and fills them. */
hale_status_t sink_find_gap(struct sink *s, struct error *err);
hale_status_t sink_stage(struct sink *s, struct error *err);
/* After that: writes back what shared file mappings can have changed. */
hale_status_t sink_settle_files(struct sink *s, struct error *err);

/* load.c: pages of all images of the chain into the staging area. */
hale_status_t sink_load(struct sink *s, struct error *err);
/* Where a page of the image is being built; 0: it isn't in the newest image's map. *end gets the
 * end of that mapping, *index its number. */
uint64_t sink_stage_of(const struct sink *s, uint64_t addr, uint64_t *end, size_t *index);

/* switch.c: the list of system calls, and carrying it out. */
hale_status_t sink_plan_switch(struct sink *s, struct error *err);
void sink_switch(struct sink *s) __attribute__((noreturn));

#endif
