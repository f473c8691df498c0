/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's side of a device process.
 *
 * Three locks, each a semaphore, since another thread may release them: life of what begins, stops
 * or ends the process (the first draining case of docs/offload.md), channel of requests and copies
 * (second and third), send of calls (fourth). snapify_pause takes the last two in this order, and
 * snapify_resume gives them back. A thread for each process receives what comes from it. */
#ifndef HALE_OFFLOAD_HOST_PROCESS_H
#define HALE_OFFLOAD_HOST_PROCESS_H

#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <hale_offload.h>
#include "offload/offload.h"
#include <snapify.h>

enum process_state {
	PROCESS_RUNS,
	PROCESS_PAUSED,	   /* the locks are held */
	PROCESS_OUT,	   /* swapped out: the locks are held, nothing is connected */
	PROCESS_RESTORING, /* connected, and not whole yet: if it ends, the snapshot is still there
			    */
	PROCESS_GONE,	   /* all calls fail with ESRCH */
};

/* A request that waits for its answer. */
struct process_answer {
	struct wire_head head;
	char payload[RIO_PAYLOAD_MAX + 1];
	void *into; /* bytes that follow go there */
	int file;   /* or there, from its beginning; -1: neither */
	int error;  /* of that file */
	_Atomic uint32_t done;
};

struct hale_event {
	struct hale_event *next;
	struct hale_process *process;
	uint64_t number;
	void *result;
	size_t result_size;
	int error;
	char why[200];
	_Atomic uint32_t done;
};

struct hale_pipeline {
	struct hale_process *process;
	uint64_t number;
};

/* What the program's image has of a device process (guest.c). */
struct guest_saved {
	char *store, *image;
	uint64_t store_size, image_size;
	unsigned count;
	struct offload_range range[OFFLOAD_RANGES];
};

/* An image to start from: a file, or bytes. size 0: none. */
struct start_image {
	int file; /* -1: bytes */
	const char *bytes;
	uint64_t size;
};

struct hale_process {
	struct hale_process *next; /* of this program */
	int fd, device;
	int wake; /* an eventfd: the thread that receives looks at revive. It is in images, while
		   * the number of fd may be another descriptor's in a restored program */
	uint64_t memory;
	char *object; /* the shared object as it was: its file may change */
	uint64_t object_size, object_sum;
	struct offload_self self;
	bool direct;	   /* its memory can be reached from here */
	_Atomic int state; /* enum process_state */
	sem_t life, channel, send;
	pthread_t receiver;
	bool received;		       /* the thread is to be joined */
	pthread_mutex_t lock;	       /* of what follows */
	bool broken;		       /* nothing comes any more */
	struct process_answer *answer; /* what waits */
	struct hale_event *events;
	uint64_t calls;
	snapify_t *capture; /* under way */
	bool terminate;
	struct process_answer captured;
	uint64_t image_sum;
	snapify_t *swapped; /* by control.c */
	struct guest_saved saved;
	bool held;	     /* a checkpoint of the program has the locks */
	_Atomic bool revive; /* the thread that receives is to make the process again */
};

/* Like rio_fail: what hale_offload_why() says. */
int process_fail(int error, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A lock, whatever signals come. */
void process_take(sem_t *lock);

/* Says a request and waits for its answer; bytes of data follow it. The caller has the channel. 0,
 * or -1 with errno and the sentence. */
int process_ask(struct hale_process *p, struct wire_head *h, const void *payload, size_t bytes,
		const void *data, struct process_answer *a);
/* Without waiting for it. */
int process_begin(struct hale_process *p, struct wire_head *h, struct process_answer *a);
int process_end(struct process_answer *a);

/* Starts a process for p on a device, from an image or anew (NULL). The state is the caller's to
 * set. process_start: and the thread that receives. */
int process_connect(struct hale_process *p, int device, const struct start_image *image);
int process_start(struct hale_process *p, int device, const struct start_image *image);
void process_close(struct hale_process *p);
/* The process is ended: its device has the memory back, the connection is closed, the thread has
 * ended. */
void process_disconnect(struct hale_process *p);
/* All that waits for it fails. */
void process_gone(struct hale_process *p);

/* The result of a call has come. */
void process_result(struct hale_process *p, const struct wire_head *h, const char *payload);
/* All of this program, where no thread is in the middle of a change. */
struct hale_process *process_first(void);
struct hale_process *process_next(struct hale_process *p);
/* All of this program, for control.c: calls with each, under a lock; returns how many. */
int process_each(int (*what)(struct hale_process *p, void *arg), void *arg);

void control_start(void);
/* The program is a restored one. As signal-safe as write(2). */
void control_restored(void);

#endif
