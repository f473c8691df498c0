/* SPDX-License-Identifier: BSD-3-Clause */
/* Levels of checkpoints with --ckpt-local, the head's side (docs/levels.md): which images have gone
 * where, whether a checkpoint can be gone back to with the nodes that are left, and which are kept.
 *
 *   levels.c        partners, copies     recover_fetch.c  images come to where ranks start
 *   levels_keep.c   pruning              levels_inherit.c another head goes on with it
 */
#ifndef HALE_HEAD_LEVELS_LEVELS_H
#define HALE_HEAD_LEVELS_LEVELS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "base/json.h"
#include "wire/message/copies.h"
#include "head/nodes/node_set.h"
#include "head/job/child_task.h"
#include "store/store.h"

struct head;

enum { LEVELS_QUEUE = 64 };

/* What of one rank's image is under way. */
struct level_part {
	uint32_t owner, partner; /* nodes */
	bool copying, sharing;	 /* an answer is outstanding */
	bool copied, shared;
};

/* What a node said that it has when it heard this head for the first time. */
struct level_held {
	uint32_t node;
	struct copies_image *images; /* [count] */
	size_t count;
	struct level_held *next;
};

struct levels {
	bool on; /* --ckpt-local */
	bool alone_said;
	uint32_t since_shared; /* checkpoints since one of them went to the shared folder */
	/* complete, and waiting for their copies; oldest first */
	struct level_todo {
		uint32_t id;
		bool shared, answer;
	} todo[LEVELS_QUEUE];
	uint32_t todo_count;
	/* whose copies are under way; id 0: none */
	uint32_t id, outstanding;
	bool shared, answer;
	struct store_manifest manifest;
	struct level_part *parts; /* [nranks] */
	double began;
	struct child_task rewrite; /* writes its manifest again, and syncs */
	char why[480];		   /* the first failure of this one */
	uint64_t failure, said;	   /* what kind it is, of which nodes; the last that was told */
	struct level_held *held;   /* only while a new head finds its way (levels_inherit.c) */
	/* recover_fetch.c */
	struct fetch *fetch; /* NULL: no images are on their way to ranks */
};

void levels_init(struct head *h);
void levels_fini(struct head *h);
/* All nodes are there. */
void levels_begin(struct head *h);

/* Is the next checkpoint to go to the shared folder, too? */
bool levels_share_next(const struct head *h, bool asked_for);
/* Into a manifest that is about to be written; what it gets is freed by levels_unfill. */
hale_status_t levels_fill(struct head *h, struct store_manifest *m, struct error *err);
void levels_unfill(struct store_manifest *m);
/* Checkpoint id is complete on the nodes' disks. answer: who waits for it hears when it is in the
 * shared folder. */
void levels_written(struct head *h, uint32_t id, bool shared, bool answer);
/* Who waits for a checkpoint hears of it when images have come to the shared folder. */
bool levels_answer(const struct head *h);
/* Removes what is older than the checkpoints that are kept, everywhere. */
void levels_prune(struct head *h);

/* Another one that waits for its copies; the next one begins, if none is under way. */
void levels_queue(struct levels *l, uint32_t id, bool shared, bool answer);
void levels_next(struct head *h);
/* n's index among the manifest's holders; false: it is none. */
bool levels_holder(const struct store_manifest *m, const struct node *n, uint32_t *index);
void levels_add_holder(struct store_part *p, uint32_t node);

/* ---- one head follows another (levels_inherit.c) ---- */

/* For the record: what only this head knows. Inside of an object. */
void levels_put(const struct head *h, struct json_out *j);
void levels_restore(struct head *h, const struct json_value *doc);
/* MSG_COPIES_HELD. */
void levels_held(struct head *h, const struct node *n, const struct message *m);
void levels_held_forget(struct head *h);
/* All nodes that are left have said what they have: it is written down. */
void levels_learn(struct head *h);
/* Copies that the head before had not finished are ordered again. */
void levels_inherit(struct head *h, const struct json_value *doc);

/* A node says COPIED or COPIES_HELD. */
void levels_copied(struct head *h, const struct node *n, const struct message *m);
void levels_node_lost(struct head *h, const struct node *n);
bool levels_child(struct head *h, pid_t pid); /* false: another one's */
/* Waits for the child that writes a manifest, if there is one. */
void levels_settle(struct head *h);

/* ---- going back ---- */

/* Every image that checkpoint id of that folder needs is in the shared folder or on a node that is
 * there, as far as the manifests say; otherwise a sentence. */
hale_status_t levels_available(struct head *h, const char *job_folder, uint32_t id,
			       struct error *err);
/* Some images of the recovery's target are not in the shared folder only. */
bool levels_fetch_needed(const struct head *h);
/* Gets every rank's images to its node; then levels_fetched is called, or, if one can't be had, all
 * go back to another checkpoint. */
hale_status_t levels_fetch(struct head *h, struct error *err);
void levels_fetch_stop(struct head *h);
void levels_fetch_answer(struct head *h, const struct node *n, const struct message *m);
/* "full:newest=checksum:…", malloc'ed, and the program that rank's image is of. */
char *levels_sink_spec(struct head *h, uint32_t rank, char *program, size_t cap);

/* recover.c: all images are where they are needed. */
void recover_fetched(struct head *h);

struct node *levels_node(struct head *h, const char *name); /* NULL: it is none of ours */

#endif
