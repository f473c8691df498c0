/* SPDX-License-Identifier: BSD-3-Clause */
/* One capture in the making: what was collected while the process was stopped. It lives in an
 * arena of its own, which no image contains. */
#ifndef HALE_IMAGE_CAPTURE_H
#define HALE_IMAGE_CAPTURE_H

#include "image/fd/fd.h"
#include "image/ipc/ipc.h"
#include "image/stream.h"

/* A private copy of pages that other processes can change at any time. */
struct page_copy {
	uint64_t addr, pages;
	void *copy;
};

struct capture {
	struct arena arena;
	struct image_params params;
	char path[IMAGE_PATH_MAX];
	int fd;
	int32_t parent; /* the captured process, seen from the writing child */
	bool forked_by_leader;
	bool shares_descriptors; /* the writing child does, until it runs */
	volatile uint32_t *said; /* set by it then; NULL: there is none */
	bool cant_fork;		 /* found out by the writing child: it lacks some of the memory */
	int root; /* in the writing child of a descendant: tree_writer_begin's; else -1 */
	uint64_t began_ns;
	struct process_capture process;
	struct list maps;	 /* struct map, all of them */
	struct list map_records; /* struct map_record */
	struct arena_bytes map_text;
	struct fd_table fds;
	struct signals_record signals;
	struct list timers;	/* struct timer_record */
	struct list threads;	/* struct thread_record; the first is the caller */
	struct list scheduling; /* struct sched_record */
	struct list advice;	/* struct advice_record */
	struct list copies;	/* struct page_copy */
	struct list ipc;	/* struct ipc_part */
	struct list written;	/* struct map_written, one for each of maps */
	struct selection selection;
	bool incremental;
	bool ahead; /* a round of a live image that isn't the last: only pages */
	/* where the kernel doesn't track: checksums of the base's pages, and of this image's */
	struct hash_table *hashes_old, *hashes_new;
};

/* Ranges of one mapping that were written since the base; whole: can't be told, all of it. */
struct map_written {
	bool whole;
	bool apart;	    /* selected and copied before the fork, and left out of it */
	struct list ranges; /* struct range */
	uint64_t saved;	    /* pages of it in the selection, once that is made */
};

/* capture.c */
void capture_init(void);
uint64_t capture_save_max(void);
/* In a new process: the writing children and the arena of the capture weren't ours. */
void capture_forget(void);
/* The process that writes the newest image; 0: its capture has written it itself. */
int capture_last_writer(void);
/* Is a child of a capture still writing? */
bool capture_is_writing(void);

/* capture_write.c: in the child, or in the caller: writes the image, reports. */
void capture_write(struct capture *c);

/* tree/tree_write.c: the images of the process's descendants, if it is the root of a round, when
 * they are written. */
void tree_put(struct capture *c, struct image_stream *s);
/* The sentence for an image that failed with -ECHILD there. */
hale_status_t tree_put_error(struct error *err);

/* ---- live.c: around the frames of a round, in the process that writes it ---- */

/* BEGIN, in the first round, and ROUND. 0 or -errno. */
int live_round_begin(const struct live_round *r, const struct live_begin *begin, bool incremental);
/* Behind the maps: what the sink has already; *offer NULL: nothing, or nobody has asked it. 0 or
 * -errno. */
int live_round_offered(const struct live_round *r, struct arena *a, struct offer **offer);
/* The sentence for a round that couldn't be sent; says what the sink said, if it did. */
hale_status_t live_round_error(const struct live_round *r, int error, struct error *err);
/* In a new process: the live image that this one came from isn't ours. fd: its stream, -1: none. */
void live_adopt(int fd);

/* ---- track.c ---- */

/* Called with the process stopped, just before the fork: finds what was written since the base
 * (c->written; clears c->incremental if that is not known), and starts tracking anew. */
void track_renew(struct capture *c);
/* The writing child says that the image which tracking is relative to is whole. */
void track_base_written(const struct capture *c);
/* In a new process: nothing is tracked. */
void track_reset(void);

/* ---- apart.c: with the process stopped, before and after the fork ---- */

void apart_begin(struct capture *c);
void apart_end(struct capture *c);


/* check_rights.c: has a thread other rights, namespaces, a root, descriptors or a folder than it was
 * started with? of: another thread of its process, or 0; status, own: /proc/PID/status of both. */
hale_status_t rights_check(pid_t pid, const char *tid, int of, const char *status, const char *own,
			   struct error *err);

#endif
