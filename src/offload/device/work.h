/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device process is made of. One thread, the main one, takes messages; each pipeline has a
 * thread that runs functions. Between OFF_PAUSE and OFF_RESUME the main thread alone runs: it
 * allocates nothing and takes no lock then, since others may have been stopped anywhere. */
#ifndef HALE_OFFLOAD_DEVICE_WORK_H
#define HALE_OFFLOAD_DEVICE_WORK_H

#include <limits.h>
#include <semaphore.h>
#include <stddef.h>
#include "offload/device/arena.h"
#include "offload/offload.h"

enum { WORK_FD = 3, WORK_DAEMON = 4, WORK_FUNCTIONS = 256 };

struct device_work {
	struct local_store store;
	char folder[PATH_MAX]; /* for images */
	sem_t send;	       /* held by who sends, and while the process is paused */
	bool paused;
	uint64_t proof;
};
extern struct device_work work;

/* ---- work.c ---- */
/* Loads the object, tells the host, then takes messages until the host is gone. */
void work_run(const char *object, uint64_t memory) __attribute__((noreturn));
/* Answers; not while somebody else sends. */
void work_done(uint64_t number, uint64_t size, const void *payload, size_t bytes);
void work_failed(int error, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Tells the daemon: 'p' paused, 'r' runs, 's' swapped out. */
void work_tell(char state);
/* The answer to OFF_CREATE. */
void work_introduce(void);

/* ---- pipeline.c ---- */
/* Numbers of pipelines; -1 with errno. */
int pipeline_begin(void);
bool pipeline_end(uint64_t number); /* when what it has to do is done */
/* Takes a run into the queue. 0 or an errno. */
int pipeline_add(const struct wire_head *h, const void *payload, void *function);

/* ---- freeze.c ---- */
/* In the constructor of a fresh process: becomes the one in the image, or tells the host why not.
 */
void freeze_become(const char *image, const char *folder) __attribute__((noreturn));
void freeze_pause(void);
void freeze_capture(void);
void freeze_resume(void);

#endif
