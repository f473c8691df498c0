/* SPDX-License-Identifier: BSD-3-Clause */
/* The process that has a program's OpenCL runtime: what its files share. One thread takes requests
 * in their order; others only wait for commands. */
#ifndef HALE_OCL_REMOTE_SERVER_H
#define HALE_OCL_REMOTE_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ocl/cl.h"
#include "ocl/remote/remote.h"
#include "ocl/remote/ring.h"
#include "ocl/remote/wire.h"

/* ---- objects by number ---- */

/* A request that made an object, or changed what it is. */
struct server_record {
	struct server_record *next, *prev;
	struct server_record *own_next, *own_prev; /* the ring of those of one object */
	struct wire_request *request;
};

struct past { /* of an event that was complete when a snapshot was made */
	cl_int profiled;
	uint64_t time[4];
};

struct obj {
	stub_kind_t kind;
	void *real;
	struct server_record *own; /* the first of its records, in order of creation; NULL: none */
	uint32_t context;	   /* its number */
	cl_device_id device;
	/* memory objects */
	bool whole, image; /* whole: has content of its own */
	size_t size, region[3], element;
	/* kernels */
	struct server_record **arg;
	uint32_t args;
	/* events */
	cl_command_type type;
	bool user, unset;
	struct past *past;
};

struct obj *obj_at(uint64_t id); /* NULL: none */
struct obj *obj_set(uint64_t id, stub_kind_t kind, void *real, uint64_t context);
/* Whether a new object may have this number. */
bool obj_is_unused(uint64_t id);
void *real_of(uint64_t id, stub_kind_t kind);
uint32_t obj_count(void); /* all numbers are below */
void obj_release(uint64_t id);

extern struct server_record records; /* head of a ring, in order of creation */
/* Keeps r, which belongs to the object that its first word names, and goes with that. */
struct server_record *record_add(const struct wire_request *r);
void record_replace(struct server_record *old, const struct wire_request *r);
void record_drop(struct obj *o, struct server_record *r); /* one of o's */

/* ---- requests ---- */

enum {
	OBJECTS_MAX = 1 << 22, /* as many as the program's side has numbers */
	LIST_MAX = WIRE_WORDS, /* objects in a list: more don't fit into a request */
};

struct in { /* r has been looked at: server_shape.c */
	const struct wire_request *r;
	const uint64_t *w; /* the next word */
	bool again;	   /* from a snapshot: nothing lies in the program's memory */
};

struct out {
	uint16_t slot;
	uint64_t value[4], bytes;
	char *data; /* WIRE_INLINE bytes */
};

/* Whether the object that in makes may have this number. */
bool obj_may_be(const struct in *in, uint64_t id);

enum { REPLY_LATER = 1000 }; /* status: a waiting thread will reply */

static inline uint64_t next(struct in *in)
{
	return *in->w++;
}

const void *next_blob(struct in *in, size_t *size);
/* A list that ends with 0, in room, which is longer; NULL: it is empty. */
const void *next_properties(struct in *in, intptr_t room[LIST_MAX + 8]);
/* Handles of a list as put_handles sends it; NULL when none was given. Where there are fewer than
 * their count says, one that is wrong follows. */
void **next_list(struct in *in, stub_kind_t kind, cl_uint *count, void *room[LIST_MAX + 1]);
/* Whether all that is taken from r is there. */
bool shape_is_right(const struct wire_request *r);
/* Whether a box reaches beyond what numbers can say, in any dimension or, in a buffer with these
 * pitches, in bytes. Runtimes (PoCL 3.1) add and multiply without looking, find it within bounds,
 * and write somewhere. The rest they are asked. */
bool box_wraps(const size_t origin[3], const size_t region[3]);
bool rect_wraps(const size_t origin[3], const size_t region[3], size_t row, size_t plane);
/* The letters of server_shape.c; NULL: there is no such operation. */
const char *shape_of(unsigned op);
/* The object is there, and can be made again by the same request. */
struct obj *obj_made(struct in *in, uint64_t id, stub_kind_t kind, void *real, uint64_t context);

struct waits {
	cl_uint count;
	cl_event *list; /* NULL: none was given */
	cl_event made;
	uint64_t event; /* number of the event to be made; 0: none */
	cl_event few[16];
};
void waits_take(struct in *in, struct waits *w);
/* Where the runtime puts the command's event. */
cl_event *waits_event(struct waits *w);
/* Afterwards: the event gets its number. */
cl_int waits_done(struct waits *w, cl_int status);

/* One request, from anywhere: what is no request is said and passed over. */
void carry_out(const struct wire_request *r);
cl_int serve(struct in *in, struct out *out);
cl_int serve_object(struct in *in, struct out *out);
/* A part of a device is released. */
void part_ends(uint64_t id);
cl_int serve_program(struct in *in, struct out *out);
cl_int serve_info(struct in *in, struct out *out);
cl_int serve_command(struct in *in, struct out *out);
cl_int serve_box(struct in *in, struct out *out, bool image);
cl_int serve_wait(struct in *in, struct out *out);
cl_int serve_callback(struct in *in);
/* ---- server_svm.c ---- */
void svm_open(void);
bool svm_device_has(cl_device_id d);
/* Whether all of it is shared virtual memory. */
bool svm_has(uint64_t address, size_t size);
/* k may be given pointers that its runtime didn't allocate. */
void svm_kernel(cl_kernel k, cl_device_id d);
cl_int serve_svm(struct in *in);
cl_int serve_svm_command(struct in *in, struct out *out);

void reply(const struct out *out, cl_int status);

/* ---- the program's memory ---- */
bool fetch(void *to, uint64_t address, size_t size);
bool store(uint64_t address, const void *from, size_t size);

/* ---- transfers under way ---- */
/* Puts what has arrived into the program's memory: before it learns that something is complete. */
void deliver(void);
/* A command is under way, with data in memory of this process: freed when done is complete, after
 * it has been put to address in the program's memory (in). Takes over data, not done. */
cl_int keep_transfer(cl_event done, char *data, bool in, uint64_t address, size_t size);
/* With one thread of the program that calls there is nothing else to do while it waits. */
bool may_wait_here(void);
/* Waits for queue (or the events) here or in another thread, then replies. */
cl_int wait_and_reply(cl_command_queue queue, cl_uint count, const cl_event *list, struct out *out);
void finish_all(void);

/* ---- server_staging.c ---- */
enum { STAGE_PIECE = 2 << 20 }; /* bytes */
/* STAGE_PIECE bytes of pinned memory for a command in q. NULL: none, or all are in use. */
char *stage_take(cl_command_queue q);
bool stage_has(const char *data);
/* False: data isn't such memory. */
bool stage_give(char *data);
/* The program has released the context. */
void stage_drop(cl_context context);

extern uint32_t unset_events;

/* ---- snapshot.c ---- */
cl_int serve_quiesce(struct out *out);
cl_int serve_snapshot(struct in *in, struct out *out);
cl_int serve_restore(struct in *in, struct out *out);
/* Platforms and devices get their numbers. */
bool devices_begin(char *why, size_t size);
/* Whether some of them are processors of this machine. */
bool devices_compute_here(void);
cl_int serve_devices(struct out *out);

/* A hash of the names and types of all devices in their order: alike nodes have the same. */
uint64_t devices_sum(void);

/* ---- server_net.c: for a program on another node ---- */
/* Takes the connections that the daemon has left (net.h). False, after a sentence: there are none,
 * or there is no memory. */
bool net_open(void);
bool net_is_used(void);
/* As memory_read and memory_write. rows of size bytes each, pitch bytes from one to the next. */
bool net_fetch(void *to, uint64_t address, size_t size, size_t rows, size_t pitch);
bool net_store(uint64_t address, const void *from, size_t size);
void net_reply(uint16_t slot);
void net_call_back(uint64_t cookie, int32_t status);
void net_say_ready(bool good);
/* Carries out what the relay sends. The process ends with the relay. */
void net_run(void);

#endif
