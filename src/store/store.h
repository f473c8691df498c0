/* SPDX-License-Identifier: BSD-3-Clause */
/* store/: checkpoints of a job in a folder, and the manifest that makes each of them whole.
 *
 *   <dir>/<job>/4.tmp/rank-0.img …      being written
 *   <dir>/<job>/4/rank-0.img … manifest.json, by one rename once every part is synced
 *   <dir>/<job>/record.jsonl            what happened, one JSON object a line
 *
 * A checkpoint is complete when its folder has the final name; its manifest carries a checksum of
 * every part. May call: image/ (reading side), base/. Called by: head/, agent/, cli/.
 */
#ifndef HALE_STORE_STORE_H
#define HALE_STORE_STORE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum {
	STORE_MANIFEST_VERSION = 2,
	STORE_REPLICAS_VERSION = 3, /* of jobs with replicas, which older readers don't know */
	STORE_SHADOWS_VERSION = 4,  /* … with shadows */
	STORE_NAME_MAX = 64,
	STORE_CHAIN_MAX = 32,
	STORE_FOLDER_MAX = 440,
	STORE_COPIES_MAX = 8,
	STORE_RUN_MAX = 33 /* of a job's own number, with its NUL */
};

/* A node whose own disk has images (docs/levels.md). */
struct store_holder {
	char node[STORE_NAME_MAX];
	char folder[STORE_FOLDER_MAX]; /* there; images lie in <folder>/<id>/<file> */
};

/* One rank's part of a checkpoint. */
struct store_part {
	char file[STORE_NAME_MAX];     /* within the checkpoint's folder; "": the rank had ended */
	bool local;		       /* it is not in that folder, only on disks of nodes */
	uint32_t copies;	       /* nodes that have it, besides */
	uint32_t on[STORE_COPIES_MAX]; /* [copies], of the manifest's holders */
	int32_t exit_status;	       /* of a rank that had ended */
	uint32_t replicas; /* of a job with replicas: as many processes the rank is to have */
	uint64_t bytes, checksum;
	uint64_t pages, pages_zero;
	uint64_t position[3]; /* stdin consumed, stdout, stderr written since the job began */
	double pause_seconds, seconds;
};

struct store_manifest {
	char job[STORE_NAME_MAX];
	char run[STORE_RUN_MAX]; /* a number that no other job has, and that restarts keep */
	uint32_t id, base;	 /* base 0: a full one */
	uint32_t nranks; /* processes: of degree replicas of each rank, one has a part, or some */
	uint32_t degree;
	uint32_t shadows; /* of a core; 0: the job has none */
	uint32_t segment; /* SEGMENT_VERSION of the library in its processes; 0: not said */
	bool mpi;
	uint32_t preload_mpi; /* program_mpi_t */
	char program[PATH_MAX], cwd[PATH_MAX];
	char **argv;		   /* NULL-terminated; owned */
	char *library_path;	   /* LD_LIBRARY_PATH of the user; owned; NULL: none */
	char stdin_path[PATH_MAX]; /* hale's stdin when it was a file; "": it was not */
	uint64_t stdin_start;	   /* at this offset of it the job's input began */
	uint64_t stdin_rest;	   /* bytes in the file stdin-rest: read by hale, not by rank 0 */
	double written_at;	   /* seconds since 1970 */
	double job_seconds;	   /* since the job began */
	double pause_seconds, seconds; /* the longest of the ranks; the whole */
	uint64_t bytes;
	/* how the job was run, what a restart goes on with */
	double ckpt_every;
	double ckpt_first, overhead, mtbf; /* of automatic ones; ckpt_first 0: not those */
	long keep, max_restarts;
	bool incremental, tag, net_encrypt;
	int compress;
	int compares;	  /* --sdc: 1: and --on-sdc stop, 2: rollback; 0: no */
	double audit;	  /* --audit: seconds of a visit; 0: no */
	bool audit_rolls; /* … and --on-sdc rollback */
	char *ckpt_local; /* --ckpt-local; owned; NULL: none */
	long shared_every;
	struct store_holder *holders; /* [holder_count]; owned */
	uint32_t holder_count;
	/* [nranks]; owned. Replica s of rank r: s * nranks / degree + r */
	struct store_part *parts;
};

/* The number in the name of a part's file ("rank-N.img"), by which nodes know it: of its rank, or
 * where all replicas are stored of its process. The part whose file has that number; false: there
 * is none. */
uint32_t store_part_image(const struct store_part *p);
bool store_part_of_image(const struct store_manifest *m, uint32_t image, uint32_t *part);

/* ---- manifests (manifest.c) ---- */

void store_manifest_fini(struct store_manifest *m);
/* malloc'ed JSON text; NULL: out of memory */
char *store_manifest_print(const struct store_manifest *m);
/* HALE_ERR_IMAGE_CORRUPT on anything that is not a manifest; then m is empty. */
hale_status_t store_manifest_parse(const char *text, size_t len, struct store_manifest *m,
				   struct error *err);
/* Of the checkpoint in folder, which is ours, has this number as its name and a seal of ours.
 * HALE_ERR_IMAGE_MISSING, _CORRUPT, _MISMATCH. */
hale_status_t store_manifest_read(const char *folder, struct store_manifest *m, struct error *err);

/* ---- the folder of a job (store.c) ---- */

struct store {
	char job_folder[PATH_MAX]; /* absolute */
	bool sync;		   /* what is complete has reached the disk */
};

/* Makes dir and dir/job with mode 0700 as needed, and clears what an earlier death left half
 * written. */
hale_status_t store_open(struct store *s, const char *dir, const char *job, bool sync,
			 struct error *err);

/* Of the file system that dir is on, or will be: statvfs(3). */
struct statvfs;
int store_statvfs(const char *dir, struct statvfs *fs);

/* So much of dir's name is there already, and what is made below can be removed again: the folders
 * of its rest, as far as they are empty. */
size_t store_there(const char *dir);
void store_unmake_folders(const char *dir, size_t there);

/* Makes the folder that checkpoint id is written into; path (PATH_MAX) gets its name. */
hale_status_t store_begin(struct store *s, uint32_t id, char *path, struct error *err);
/* Writes the manifest and gives the folder its final name. On failure it is set aside. */
hale_status_t store_commit(struct store *s, const struct store_manifest *m, struct error *err);
/* Sets aside what there is of one that isn't complete. */
void store_abandon(struct store *s, uint32_t id);

/* Ids of the complete checkpoints, oldest first; malloc'ed. */
size_t store_list(const char *job_folder, uint32_t **ids);
void store_path(const char *job_folder, uint32_t id, char path[PATH_MAX]);

/* 4: all of it is in the checkpoint's folder; 2: each image is on the disks of two nodes at least;
 * 1: on one. */
int store_level(const struct store_manifest *m);
/* Puts m in place of the manifest of a complete checkpoint, at once. */
hale_status_t store_rewrite(const char *job_folder, bool sync, const struct store_manifest *m,
			    struct error *err);
/* Sets a complete checkpoint aside, from where nothing comes back. False: it is not there. */
bool store_remove(const struct store *s, uint32_t id);

/* Sets aside all but the keep newest and what those are differences to. True: there was such. */
bool store_prune(struct store *s, size_t keep);

/* Removes all that was set aside. Takes as long as the disk does for each image. */
void store_sweep(const char *job_folder);
/* … and what is half written: nobody writes into this folder any more. */
void store_finish(const char *job_folder);

/* Sets a damaged checkpoint aside, as <id>.bad, so that it is neither used nor counted again. */
void store_reject(struct store *s, uint32_t id);

/* Ids that id needs, itself first, the full one last. HALE_ERR_IMAGE_MISSING when one is gone. */
hale_status_t store_chain(const char *job_folder, uint32_t id, uint32_t chain[STORE_CHAIN_MAX],
			  size_t *count, struct error *err);

/* Checks rank's part of one checkpoint against its manifest: its length, and with deep every
 * checksum in it. Of a local part nothing can be seen from here: HALE_OK. */
hale_status_t store_verify_part(const char *folder, const struct store_manifest *m, uint32_t rank,
				bool deep, struct error *err);

/* The same for a file anywhere: an image of bytes length and that checksum. */
hale_status_t store_verify_file(const char *path, uint32_t rank, uint64_t bytes, uint64_t checksum,
				bool deep, struct error *err);

/* Removes a folder and the files in it (no deeper). */
void store_remove_folder(const char *folder);
/* Checkpoints of this job could be kept in dir: something can be written there, or where dir is to
 * be made. Nothing is left of the try. A full disk is no error: it may not be full later. */
hale_status_t store_probe(const char *dir, const char *job, struct error *err);
/* Makes the folder of a new job in dir. One that is there already is another job's: an error. */
hale_status_t store_claim(const char *dir, const char *job, struct error *err);
/* mkdir -p, with mode 0700. */
hale_status_t store_make_folders(const char *path, struct error *err);

#endif
