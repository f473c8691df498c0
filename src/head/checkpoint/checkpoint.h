/* SPDX-License-Identifier: BSD-3-Clause */
/* The checkpoint under way, and when the next one is taken (docs/coordinated-checkpoint.md). Calls
 * levels/, profile/, watch/, standby/ and nodes/. */
#ifndef HALE_HEAD_CHECKPOINT_CHECKPOINT_H
#define HALE_HEAD_CHECKPOINT_CHECKPOINT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "head/job/child_task.h"
#include "image/image.h"
#include "node/proto.h"
#include "store/failure_history.h"
#include "store/store.h"
#include "wire/session/loop.h"

struct head;

enum { CKPT_MTBF = 96 };

enum checkpoint_phase { CKPT_IDLE, CKPT_CHECKING, CKPT_CAPTURING, CKPT_WRITING, CKPT_COMMITTING };

struct checkpoint_rank {
	bool asked, resumed, written;
	int across; /* how far it is, with CKPT_ACROSS (checkpoint_across.c) */
	struct store_part part;
};

typedef enum ckpt_origin { ORIGIN_TIMER, ORIGIN_USER, ORIGIN_PROGRAM, ORIGIN_RULE } ckpt_origin_t;

/* How far the images are. */
struct checkpoint_progress {
	uint64_t bytes_seen, bytes_expected;
	double moved_at;
	double disk_at; /* when somebody was last seen to wait for a disk */
	bool shown;
	uint32_t looks;
	bool halted_said;    /* that it waits for a rank that somebody has stopped */
	bool disk_said;	     /* that it waits for a disk */
	uint32_t idle_looks; /* times in a row that somebody's image had nobody to write it */
};

/* Processes so far. Of replicas one writes. */
struct checkpoint_count {
	uint32_t asked, resumed, writers, written;
};

/* Incremental checkpoints since the last full one. */
struct checkpoint_chain {
	bool broken; /* the next one must be full */
	uint32_t length;
};

/* checkpoint_auto.c */
struct checkpoint_auto {
	struct loop_timer interval;
	double quiet_since;	     /* the last one was complete, or the last attempt was made */
	uint32_t attempts;	     /* of the timer, since the last one that was complete */
	struct failure_history past; /* of earlier jobs */
	bool asked_for;		     /* somebody has asked for one, so the job's are kept */
};

/* checkpoint_across.c */
struct checkpoint_across {
	bool is;	/* ranks of several nodes write the same files */
	bool looks;	/* all images are there: is that still not so? */
	bool seen;	/* it is not */
	uint32_t still, taken; /* ranks that stand still, that have an image */
};

/* checkpoint_wait.c */
struct checkpoint_wait {
	double since; /* for a moment without child processes; 0: it does not */
	double look;  /* seconds until the next look */
	bool said;
	struct loop_timer again, required;
};

struct checkpoint {
	enum checkpoint_phase phase;
	bool wanted; /* to be started as soon as the job can */
	bool shared; /* it goes to the shared folder, whatever else (levels.h) */
	ckpt_origin_t origin;
	uint32_t id, base, last_id;
	/* of the one under way, and what was in force with the newest one (checkpoint_auto.c) */
	image_compress_t compress;
	bool tracks, changes, tracked;
	char folder[PATH_MAX];
	double began, phase_began;
	struct checkpoint_rank *ranks;
	char last_refusal[480];
	struct store_manifest manifest; /* COMMITTING */
	struct child_task commit;	/* writes it, and syncs */
	struct child_task sweep;	/* removes what is not kept */
	bool unswept;			/* there has come more since that began */
	struct loop_timer watch;
	struct checkpoint_count count;
	struct checkpoint_chain chain;
	struct checkpoint_progress progress;
	struct checkpoint_auto timed;
	struct checkpoint_wait wait;
	struct checkpoint_across across;
};

/* checkpoint.c */
void checkpoint_init(struct head *h);
void checkpoint_fini(struct head *h);
/* HALE_OK: under way, or will be; the control and the program hear of the end. Otherwise refused.
 */
hale_status_t checkpoint_request(struct head *h, ckpt_origin_t origin, struct error *err);
void checkpoint_checked(struct head *h, const struct error *err, uint64_t resident_bytes);
void checkpoint_packet(struct head *h, uint32_t rank, const union proto_packet *p);
void checkpoint_ask(struct head *h, uint32_t rank, uint32_t last_id);
/* Every process runs on, every image is there, and so is what was printed before. */
void checkpoint_complete_if_whole(struct head *h);
/* The job can be checkpointed now, perhaps: starts what is wanted. */
void checkpoint_poll(struct head *h);
/* Something else has the job: the one under way is given up. */
void checkpoint_abandon(struct head *h, const char *why);
/* A process has died, and its rank lives on in others. One that is under way begins again. */
void checkpoint_replica_died(struct head *h);
/* But not if all images are there and only the manifest is on its way to the disk. */
void checkpoint_abandon_open(struct head *h, const char *why);
/* A rank has ended as it should. */
void checkpoint_rank_done(struct head *h, uint32_t rank);
/* checkpoint_auto.c: the timer of checkpoints that nobody asks for begins; anew after one has been
 * completed. */
void checkpoint_interval_start(struct head *h);
/* How often the job is expected to fail, and from what that is known, for a sentence. */
const char *checkpoint_show_mtbf(const struct head *h, char text[CKPT_MTBF]);
/* The job is over: what became of it is for later ones to know. */
void checkpoint_add_to_history(const struct head *h);
void checkpoint_interval_again(struct head *h);
/* What tasks that are executed again are worth beside checkpoints, into the report; with --tasks.
 */
void checkpoint_report_tasks(struct head *h);
/* Sets compress, tracks and changes of the one that begins. */
void checkpoint_choose_form(struct head *h);
/* HALE_ERR_STORE_FULL: the automatic one would fill the disk too far. */
hale_status_t checkpoint_has_room(const struct head *h, struct error *err);
/* It has come to nothing, and is tried again soon, as long as it may wait. */
void checkpoint_again(struct head *h, const char *why);
/* checkpoint_across.c: all agents have said which files are written: what does the checkpoint need
 * that begins? Its flag; what a rank says of it. */
void across_begin(struct head *h);
uint32_t across_flags(const struct head *h);
void across_said(struct head *h, struct checkpoint_rank *k, enum proto_type said);
/* All images are there: true: the agents have to say once more which files are written. They have:
 * false: nobody has asked for that. */
bool across_look(struct head *h);
bool across_looked(struct head *h);
/* A rank has come: perhaps all are there now, and run on. */
void across_back(struct head *h);
/* checkpoint_wait.c: false: it has waited for as long as it may, and is refused for err. */
bool checkpoint_wait(struct head *h, const struct error *err);
void checkpoint_wait_end(struct head *h);
/* What is wanted is begun in a moment. */
void checkpoint_look_again(struct head *h);
/* Since now, unless that was so before, there is no new checkpoint; there is one again. */
void checkpoint_unprotected(struct head *h, const char *why);
void checkpoint_protected(struct head *h);
/* checkpoint_write.c */
void checkpoint_complete(struct head *h);
/* Waits for the child that commits, if there is one, and takes what came of it. */
void checkpoint_settle(struct head *h);
bool checkpoint_child(struct head *h, pid_t pid); /* false: another one's */
/* Has a child remove what the store has set aside. */
void checkpoint_sweep(struct head *h);
/* Takes away what is more than --keep wants. */
void checkpoint_prune(struct head *h);
/* Waits until all of it is removed. */
void checkpoint_sweep_end(struct head *h);
void checkpoint_watch(void *arg);
void checkpoint_progress_clear(struct head *h);

#endif
