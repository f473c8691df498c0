/* SPDX-License-Identifier: BSD-3-Clause */
/* The way back to a checkpoint, after a loss (docs/checkpoints.md). Calls checkpoint/, levels/,
 * migration/ and nodes/. */
#ifndef HALE_HEAD_RECOVERY_RECOVERY_H
#define HALE_HEAD_RECOVERY_RECOVERY_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "base/json.h"
#include "head/job/child_task.h"
#include "image/frame.h"
#include "policy/recovery.h"
#include "store/store.h"
#include "wire/session/loop.h"

struct head;

/* recover_check.c: after a lazy restart children read all of the images while the ranks run from
 * them. */
struct recovery_check {
	bool under_way;
	struct error *verdicts; /* shared with the children; [nranks] */
	pid_t *children;	/* [nranks]; 0: done or not begun */
	uint32_t next, running;
};

/* recover_files.c: files that were changed since a checkpoint. */
struct recovery_files {
	struct child_task undo;
	bool undone; /* the files are what they were at checkpoint `target`, or said not to be */
	uint32_t target;
	bool journal_only; /* nothing else has needed the job's folder so far */
	size_t dir_there;  /* so much of --ckpt-dir's name was there before */
	char **exports;	   /* the user's, and journal_text; NULL: not made yet */
	char journal_text[STORE_FOLDER_MAX + 16];
};

struct recovery {
	uint64_t *sums; /* [chain_count][nranks]: checksums of the images, as manifests have them */
	uint32_t target;	   /* checkpoint; 0: from the beginning */
	char folder[PATH_MAX];	   /* of the job's checkpoints; "": none yet */
	struct recovery_skip skip; /* checkpoints that are not gone back to */
	char refused[480];	   /* why the last one was refused that was tried; "": none was */
	bool first;		   /* the restore that hale restart begins with */
	bool moving;		   /* ranks leave a node: nothing has failed */
	struct store_manifest manifest;
	uint32_t chain[STORE_CHAIN_MAX];
	size_t chain_count;
	double began;
	bool anew; /* ranks go back to the beginning, and have not all been heard of yet */
	struct loop_timer deadline;
	bool environment_lost; /* agents have another one than the job began with */
	bool program_known;
	struct file_stamp program; /* when the job began, if known */
	struct recovery_check check;
	struct recovery_files files;
};

/* recover.c: from CLEARING on */
void recover_fini(struct head *h);
bool recover_possible(const struct head *h);
bool recover_has_beginning(const struct head *h); /* the job may start again from there */
/* Everybody is gone: goes back to the newest checkpoint that is whole. */
void recover_start(struct head *h);
/* Starts what becomes the images of the target; all ranks from their beginning. */
void recover_restore(struct head *h);
void recover_launch(struct head *h);
/* Says that the target is refused, and why; remembered for whoever asks why the job begins anew. */
void recover_refuse(struct head *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void recover_reject(struct head *h);	 /* the target is damaged: set aside for good */
void recover_pass_over(struct head *h);	 /* the target can't be restored here: not tried again */
uint32_t recover_newest(struct head *h); /* id; 0: none */
/* To the user of a job that ends: how it can go on, if it can. */
void recover_say_how(struct head *h);
/* The manifest is of this job. HALE_ERR_IMAGE_MISMATCH */
hale_status_t recover_check_whose(const struct head *h, const char *job_folder,
				  const struct store_manifest *m, struct error *err);
/* Folder of the job that checkpoint id is in. */
const char *recover_folder_of(struct head *h, uint32_t id);

/* recover_files.c: files that ranks have changed since a checkpoint, and their journal. exports:
 * the user's variables, and where the journal is. begin: called before ranks begin or come back.
 * end: called last of all. */
char **recover_files_exports(struct head *h);
void recover_files_init(struct head *h);
void recover_files_fini(struct head *h);
void recover_files_end(struct head *h);
void recover_files_begin(struct head *h);
/* True while the files are not yet what they were at the target of the recovery: a child undoes the
 * changes. Then recover_files_child calls recover_start again. */
bool recover_files_wait(struct head *h);
/* A child of the head has ended. True: it was that one. */
bool recover_files_child(struct head *h, pid_t pid);
/* Drops what no checkpoint needs of the journal. True: there was such, to be swept. */
bool recover_files_drop(struct head *h);

/* recover_program.c: the program's file, as it was when the job began: noted, compared with that of
 * now, and handed on to the next head. */
void recover_program_note(struct head *h);
bool recover_program_changed(const struct head *h);
void recover_program_put(const struct head *h, struct json_out *j);
void recover_program_restore(struct head *h, const struct json_value *doc);

/* recover_check.c: after a lazy restart the images are verified while the job runs; no checkpoint
 * is taken meanwhile. A bad one is JOB_DAMAGED. */
void recover_check_start(struct head *h);
bool recover_checking(const struct head *h);
void recover_check_stop(struct head *h);
bool recover_child(struct head *h, pid_t pid, int status); /* a child of this kind ended */

/* recover_replicas.c, for jobs with replicas. First, before anybody is placed: makes the view of
 * the processes that the target of the recovery has images of; the others count as lost. */
void recover_replicas(struct head *h);
/* All are placed: notes where each process is at home. */
void recover_replicas_placed(struct head *h);
/* Those with images run: the others come back as copies of them. */
void recover_replicas_run(struct head *h);

#endif
