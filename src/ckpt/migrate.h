/* SPDX-License-Identifier: BSD-3-Clause */
/* One process's side of a migration (docs/migration.md; seed 001, 3.4.2): rounds of its live image
 * while it runs, the stop of all ranks, and what a rank does that becomes a copy. What is asked for
 * comes through the mailbox, as for a checkpoint; the stream is a socket that the agent gives. */
#ifndef HALE_CKPT_MIGRATE_H
#define HALE_CKPT_MIGRATE_H

#include "ckpt/rank_private.h"
#include "image/image.h"

/* What a sink hands to the process that it becomes (image_pass). */
struct migrate_pass {
	struct link_address address;
	uint32_t direct; /* the stream ends in the source itself */
};

/* The newest request of a migration that this process has attended to. */
uint32_t migrate_last_id(void);

/* CKPT_LIVE without CKPT_STOP: a round while the program runs. All other threads are parked.
 * Tells the agent RESUMED, the child WRITTEN, either FAILED. */
void migrate_round(const struct ckpt_request *q, uint64_t began_ns);

/* Any other request that takes no image. */
void migrate_attended(uint32_t id);

/* CKPT_HOLD: is this process to stand still for a while? Then, with all
 * other threads parked, migrate_hold; if they can't be, migrate_hold_not. */
bool migrate_hold_wanted(void);
void migrate_hold(uint64_t began_ns);
void migrate_hold_not(void);

/* CKPT_STOP: in the place of image_capture, with all participants suspended. A rank that moves
 * returns IMAGE_RESTORED in its copy, and doesn't return in the process that has moved. Tells the
 * agent STOPPED, and FAILED when there will be no copy. */
image_return_t migrate_stop(const struct ckpt_request *q, const void *note, size_t note_len);
/* Then, not in the copy: waits for the stop's end. True: this process is in a new segment now. */
bool migrate_await_release(uint32_t id);
/* In the copy, connected to its agent: says that it runs, or ends it, where the source might be let
 * go on. */
void migrate_runs(void);

/* link.c: takes the new segment, for which a WELCOME has come. */
hale_status_t link_segment_change(struct error *err);
/* link.c: the newest WELCOME had WELCOME_GO. */
bool link_let_go(void);

/* In a fresh process: becomes the one that comes from `from`, "@NAME" or a path. Returns with err
 * on failure. */
void migrate_sink(const char *from, struct error *err);

#endif
