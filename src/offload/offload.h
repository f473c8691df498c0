/* SPDX-License-Identifier: BSD-3-Clause */
/* offload/: processes on devices (include/hale_offload.h) and their snapshots (include/snapify.h).
 * host/ is libhale_offload.so, in the program; device/ is the daemon's part (in `hale`) and the
 * program hale-offload, which a device process is. docs/offload.md has states and invariants.
 * May call: base/, rio/, image/ (hale-offload alone). Called by: cli/. */
#ifndef HALE_OFFLOAD_OFFLOAD_H
#define HALE_OFFLOAD_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include "rio/wire.h"

/* Messages, with heads as rio/wire.h has them. Requests are answered by OFF_DONE or OFF_FAILED in
 * their order; OFF_RESULT comes whenever a function has ended. Bytes follow where it says so. */
enum offload_op {
	/* to the daemon */
	OFF_LIST = RIO_SERVICES, /* OFF_DONE: struct offload_device for each device */
	OFF_CREATE, /* payload: struct offload_start; behind it the shared object, the image */
	/* to the device process */
	OFF_ALLOC,    /* size -> number: address */
	OFF_FREE,     /* number */
	OFF_WRITE,    /* number: address, size; bytes follow */
	OFF_READ,     /* number: address, size -> bytes follow; sum 1: could they? */
	OFF_FUNCTION, /* payload: name -> number */
	OFF_PIPE,     /* -> number */
	OFF_PIPE_END, /* number */
	OFF_RUN,      /* number: call, size: pipeline, sum: function; payload: struct offload_run */
	OFF_PAUSE,    /* the last message until OFF_RESUME but for these: */
	OFF_STORE,    /* -> payload: struct offload_range for each buffer */
	OFF_CAPTURE,  /* -> size: bytes of the image, which follow */
	OFF_RESUME,
	OFF_END, /* number 1: it is swapped out */
	/* from the device process */
	OFF_DONE,
	OFF_FAILED, /* error; payload: a sentence */
	OFF_RESULT, /* number: call, error; payload: the result, or a sentence */
	OFF_LAST,
};

enum { OFFLOAD_RANGES = 500, OFFLOAD_PIPES = 64, OFFLOAD_DEVICES = 64 };

struct offload_device {
	uint64_t memory, used; /* bytes for buffers; given out */
	uint32_t processes, cores;
	uint32_t out, crashed; /* swapped out from here; ended by themselves: so far */
};

struct offload_start {
	uint32_t device, zero;
	uint64_t memory, object_size, image_size; /* image_size 0: a new process */
	uint64_t object_sum;
};

struct offload_range {
	uint64_t address, size;
};

struct offload_run {
	uint32_t buffers, args_size, result_size, zero;
	/* buffers × uint64_t, args_size bytes */
};

/* What OFF_CREATE's last answer says of the process, as payload. */
struct offload_self {
	int32_t pid;
	uint64_t proof; /* at proof_at in its memory: whoever finds it there may copy directly */
	uint64_t proof_at;
	char boot[40];
};

/* ---- the daemon's part ---- */

struct offload_service {
	unsigned devices;
	uint64_t memory;     /* of each */
	const char *program; /* hale-offload */
};
void offload_serve_begin(const struct offload_service *s);
bool offload_serve(int fd, const struct wire_head *h, const void *payload);

#endif
