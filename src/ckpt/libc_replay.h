/* SPDX-License-Identifier: BSD-3-Clause */
/* What libc tells a program and the replicas of a rank would be told differently: clocks, processor
 * times, random bytes. In a job with replicas the leader's values replace the followers'
 * (docs/redundancy.md, "Determinants"). In other jobs each of these calls costs one look at a flag.
 *
 * Replaced are calls of the thread that has called hale_libc_replay_begin, outside the library, not
 * in children, and not those of runtimes that look at the clock whenever they wait (libc_replay.c
 * has the list): two replicas wait differently long. */
#ifndef HALE_CKPT_LIBC_REPLAY_H
#define HALE_CKPT_LIBC_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { LIBC_REPLAY_MAX = 1024 }; /* bytes of one value */

/* How the leader has opened a file. */
struct libc_replay_file {
	int64_t offset; /* where what is appended begins */
	uint64_t inode;
	int32_t error; /* errno; 0: it is open */
};

/* What match/ does. Called inside the guard; may wait. */
struct libc_replay_hooks {
	/* True: *value is the leader's now. False: it stays, this process decides. */
	bool (*value)(void *value, size_t size);
	/* True: the leader has opened the file, and says how. False: this process leads, opens it,
	 * and calls file_tell, which returns when its successor knows. */
	bool (*file_ask)(struct libc_replay_file *f);
	void (*file_tell)(const struct libc_replay_file *f);
};

/* By match/, when the library is open and before it is closed. */
void hale_libc_replay_begin(const struct libc_replay_hooks *hooks);
void hale_libc_replay_end(void);

/* Finds libc's functions. Early (library constructor). */
void libc_replay_init(void);

/* This thread's calls are replayed where it is. */
bool libc_replay_inside(void);
extern const struct libc_replay_hooks *libc_replay_hooks;

#endif
