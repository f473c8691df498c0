/* SPDX-License-Identifier: BSD-3-Clause */
/* epoch/: where the program waits: which epochs close, whether there were errors, checkpoints of
 * device memory, the way back, other devices, and what all of it cost. May call: log/. Called by:
 * entry/. */
#ifndef HALE_OCL_EPOCH_EPOCH_H
#define HALE_OCL_EPOCH_EPOCH_H

#include "ocl/ocl.h"

/* ---- epoch.c ---- */
/* The program has waited for something in d: queue (all of it), or NULL. CL_SUCCESS, or the error
 * that the blocking call returns. */
cl_int ocl_epoch_sync(struct domain *d, struct queue *queue, bool closes);
/* A wait for command `number` has succeeded: what it reads has come, whatever the runtime can say
 * about it by now. */
void ocl_epoch_came(struct domain *d, uint64_t number);
/* What a failed call on q (NULL: on the context) means: an error of the program's (status is
 * returned), or a lost device: then what q's domain had there is brought to another one
 * (CL_SUCCESS: call again, there). moves: ocl.moves before the call. */
cl_int ocl_epoch_failed(struct domain *d, struct queue *q, cl_int status, uint32_t moves);
/* The same for a call that concerns no queue, and only for codes that say so plainly. True: call
 * again. */
bool ocl_epoch_moved(struct domain *d, cl_int status, uint32_t moves);
/* The same for a call about the program's object. */
bool ocl_again(void *handle, ocl_kind_t kind, cl_int status, uint32_t moves);
/* Whether this thread's call is given up, whose last try a loss has ended (again), or not. */
bool ocl_lost_too_often(bool again);
/* In a process rebuilt from an image, before its first command: what the image brought back is the
 * point to go back to. */
void ocl_epoch_restarted(struct domain *d);
/* Waits until every command that can run has run. False: some wait for user events. */
bool ocl_epoch_quiesce(struct domain *d);
bool ocl_domain_gated(const struct domain *d);
/* Whether the device that d is on still takes a word and gives it back. */
bool ocl_epoch_answers(struct domain *d);
/* At once, whatever the settings say: the log is too long. */
void ocl_epoch_force(struct domain *d);

/* ---- detect.c ---- */
void ocl_detect_init(void);
/* In a child of fork. */
void ocl_detect_child(bool protects);
/* In a process rebuilt from an image; async-signal-safe. */
void ocl_detect_reborn(void);
/* True: there were errors since the last time. Asks in this thread: a query of NVML takes 10 to 20
 * us on the GPUs of today, less than to wake another thread, and there is nothing to do meanwhile.
 * now: clock_seconds(). */
bool ocl_detect_errors(struct domain *d, ocl_phase_t phase, double now);
/* What has been counted up to now is no news; after a recovery on another device. */
void ocl_detect_settle(struct domain *d);

/* ---- store.c ---- */
/* The file belonged to the process of which this one is a copy. */
static inline bool ocl_store_is_gone(const struct ocl_store *s)
{
	return s->fd >= 0 && s->life != atomic_load(&ocl.lives);
}
/* After a restart of the process from an image, which leaves the file out: nothing is saved, and
 * what was since can't be mended before the next checkpoint. */
void ocl_store_renew(struct domain *d);
bool ocl_store_open(struct domain *d);
/* At the beginning: says what is wrong with the folder. */
void ocl_store_look(void);
void ocl_store_close(struct domain *d);
off_t ocl_store_take(struct domain *d, off_t bytes);
void ocl_store_give(struct domain *d, off_t at, off_t bytes);
bool ocl_store_write(struct domain *d, off_t at, const void *data, size_t size);
bool ocl_store_read(struct domain *d, off_t at, void *data, size_t size);
/* Bytes per second of the disk under the store; 0: not known yet. Asked in the background. */
double ocl_store_speed(struct domain *d);

/* ---- checkpoint.c, copy.c, hash.c ---- */
typedef enum ocl_saved { OCL_SAVED, OCL_SAVE_ERRORS, OCL_SAVE_FAILED } ocl_saved_t;
/* Saves d; the domain is quiescent. OCL_SAVE_ERRORS: the second check found errors. */
ocl_saved_t ocl_checkpoint_save(struct domain *d);
bool ocl_checkpoint_restore(struct domain *d);
/* Overwrites all content, after a pretended error. */
void ocl_checkpoint_damage(struct domain *d);
/* An unchanged object whose content is no longer what was saved. */
bool ocl_checkpoint_scrub(struct domain *d);
void ocl_mem_layout(struct mem *m);
/* The log has not all that was written: the next checkpoint takes all content from the device. */
void ocl_content_unlogged(struct domain *d);
/* The program still has m, which has content of its own, or a part of it. */
bool ocl_content_is_alive(const struct domain *d, const struct mem *m);

/* ---- scratch.c ---- */
/* Before a checkpoint: which commands in the log use what is scratch. */
void ocl_scratch_look(struct domain *d);
/* The content of m means nothing any more: it is scratch, and the program has waited for what used
 * it. */
bool ocl_scratch_is_over(const struct mem *m);

static inline bool ocl_is_content(const struct ocl_object *o)
{
	const struct mem *m = (const struct mem *)o;

	return (o->kind == OCL_MEM || o->kind == OCL_SVM) && m->root == m && m->chunk_count > 0;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): m is a name */
#define EACH_CONTENT(d, m)                                                                         \
	(struct ocl_object *o_ = (d)->objects.next; o_ != &(d)->objects;                           \
	 o_ = o_->next) for (struct mem *m = ocl_is_content(o_) ? (struct mem *)o_ : NULL; m;      \
			     m = NULL)
/* NOLINTEND(bugprone-macro-parentheses) */

/* Moves content between device and store, chunk by chunk. visit gets each chunk's bytes. */
typedef bool (*ocl_chunk_fn)(void *arg, struct mem *m, size_t index, void *data, size_t size);
/* want: by chunk, NULL for all. */
bool ocl_copy_out(struct domain *d, struct mem *m, const bool *want, ocl_chunk_fn visit, void *arg);
/* ocl_content_show maps contents for the host, and waits once for all of them: those that which()
 * selects of the memory that host and device share, and of coarse-grained SVM. in: they are to be
 * written, else read. ocl_content_hide unmaps them, with one wait. For checkpoints and restores. */
bool ocl_content_show(struct domain *d, bool in, bool (*which)(const struct mem *));
bool ocl_content_hide(struct domain *d);
bool ocl_copy_in(struct domain *d, struct mem *m, ocl_chunk_fn visit, void *arg);
/* Whether m's flags keep the host from writing (in) or reading it; then content goes this way. */
bool ocl_aside_needed(const struct mem *m, bool in);
bool ocl_aside_copy(struct mem *m, const bool *want, cl_command_queue q, bool in,
		    ocl_chunk_fn visit, void *arg);
/* What init, an OP_INIT, says of m, by data. */
bool ocl_aside_init(struct mem *m, const struct ocl_entry *init, cl_command_queue q,
		    const void *data);
/* Whether e reads, as mappings are repeated, what the host may not read; and such a read. */
bool ocl_aside_reads(const struct ocl_entry *e);
cl_int ocl_aside_read(const struct ocl_entry *e, cl_command_queue q, void *host, cl_uint n,
		      const cl_event *w, cl_event *event);
cl_command_queue ocl_own_queue(struct domain *d, cl_device_id device);
/* One where q is (NULL: anywhere in d). */
cl_command_queue ocl_queue_beside(struct domain *d, const struct queue *q);
struct queue *ocl_any_queue(struct domain *d);
void ocl_helpers_release(struct domain *d);

void ocl_hash(const void *data, size_t size, uint64_t hash[2]);
/* Hashes of all chunks, computed on the device. False: not possible, hash on the host. */
bool ocl_hash_on_device(struct domain *d, struct mem *m, uint64_t (*hash)[2]);

/* ---- replay.c, migrate.c ---- */
/* Restores and replays, elsewhere if need be; lost: the device itself is gone. False: the domain is
 * dead. */
bool ocl_recover(struct domain *d, bool lost);
bool ocl_replay(struct domain *d);
/* The transfer that a mapping, or its end, amounts to: *t. False: none. */
bool ocl_replay_transfer(const struct domain *d, const struct ocl_entry *e, struct ocl_entry *t);
/* The program's kernels have the program's arguments again. */
void ocl_replay_unbind(struct domain *d);
/* Buffers and images in memory of the program (CL_MEM_USE_HOST_PTR) that it has released, and that
 * only the log still needs, get memory of the runtime's: what they lay in may be something else by
 * now. False: the runtime has none. */
bool ocl_part_from_host(struct domain *d);
/* To the next device that hasn't been tried. False: there is none. */
bool ocl_migrate(struct domain *d);

/* ---- report.c ---- */
void ocl_report_init(void);
void ocl_report_end(void);

#endif
