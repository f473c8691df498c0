/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of ocl_random share. */
#ifndef OCL_RANDOM_H
#define OCL_RANDOM_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "ocl_ok.h"

enum {
	MEMORIES = 14,
	BLOCKS = 8,
	QUEUES = 4,
	READERS = 32,
	TOUCHED = 4,
	WAITS = TOUCHED * (READERS + 1) + 2,
	MAPPINGS = 4,
	GATES = 3,
	LEFT = 8,
	NOTES = 64,
	SIDE_BYTES = 2000,
	THREADS = 8,
};

enum kernel { MIX, REDUCE, COUNT, SWAP, PAINT, SAMPLE, KERNELS };

/* The commands that the next one which reads or writes the same memory has to wait for. */
struct uses {
	cl_event writer;
	cl_event readers[READERS];
	int reading;
};

/* HIDDEN: the host may not read or write it, or neither. TABLE: kernels read it only. */
enum kind { NONE, BUFFER, IMAGE, SHARED, HIDDEN, TABLE };

struct memory {
	enum kind kind;
	cl_mem mem;
	void *shared;
	size_t bytes, width, height;
	int root; /* the buffer that this one is a part of, or itself */
	bool mapped;
	struct uses uses; /* of a root: parts overlap */
};

struct block {
	char *data;
	size_t bytes;
	struct uses uses;
};

/* An image of any other shape. */
struct volume {
	cl_mem mem; /* NULL: none */
	size_t size[3];
	bool of_buffer;
	struct uses uses;
};

struct mapping {
	struct memory *of; /* NULL: none */
	uint32_t *data;
	size_t bytes;
	bool read, write;
	cl_event event;
};

/* What callbacks have put there by commands of their own. */
struct notes {
	cl_command_queue queue;
	cl_mem mem;
	cl_uint taken;
};

/* A context that has nothing to do with the player's own. */
struct side {
	cl_device_id part;  /* of the device, where it lives; NULL: on the whole */
	cl_context context; /* NULL: there is none */
	cl_command_queue queue;
	cl_mem mem[2];
	cl_kernel kernel;
	char sent[SIDE_BYTES];
	struct block block; /* what it gives back; its uses are in the player's context */
	cl_event done;	    /* NULL: nothing is under way */
};

struct player {
	uint64_t state, hash;
	int commands;
	bool maps, svm, beside, native;
	cl_device_id device;
	cl_context context;
	cl_program program;
	cl_command_queue queues[QUEUES];
	cl_uint queue_count;
	cl_kernel kernels[KERNELS];
	struct memory memories[MEMORIES];
	struct block blocks[BLOCKS];
	struct volume volume;
	struct mapping mappings[MAPPINGS];
	cl_event gates[GATES]; /* user events that aren't set */
	int gate_count;
	cl_event chained; /* a user event that a callback sets, or has set; NULL: none */
	struct notes notes;
	struct side side;
	struct memory scratch;
	cl_event left[LEFT]; /* the last ones of queues that were released since all was finished */
	int left_count;
	int asked, called; /* callbacks; called under lock */
	pthread_t thread;
};

struct command {
	struct player *p;
	cl_command_queue q;
	cl_bool block;
	cl_event waits[WAITS], event;
	cl_uint n;
	struct uses *touched[TOUCHED];
	bool writes[TOUCHED];
	int touches;
};

#define LIST(c) (c).n, (c).n > 0 ? (c).waits : NULL, &(c).event

uint32_t below(struct player *p, size_t n);
void see(struct player *p, const void *data, size_t bytes);
void scribble(struct player *p, void *data, size_t bytes);
void open_gates(struct player *p);
void wait_for(struct player *p, cl_uint n, const cl_event *events);
void wait_uses(struct player *p, struct uses *u);
struct command begin(struct player *p);
void touch_uses(struct command *c, struct uses *u, bool writes);
void touch(struct command *c, struct memory *m, bool writes);
void ready(struct command *c);
void end(struct command *c);
struct memory *pick(struct player *p, enum kind kind);
struct memory *pick_array(struct player *p);
void set_array(cl_kernel k, cl_uint at, const struct memory *m);
void launch(struct command *c, cl_kernel k, cl_uint dimensions, const size_t *all,
	    const size_t *local);
void after_transfer(struct player *p, const struct command *c, struct block *h, bool write);
void forget(struct uses *u);
void finish(struct player *p);
/* A callback has been called, and is about to end. */
void count_call(struct player *p);
/* Drawn anew, as all of them are to begin with. */
cl_command_queue make_queue(struct player *p);
extern const char *const kernel_names[KERNELS];
extern const char kernel_source[];
extern size_t part_align;

/* ---- ocl_random_images.c ---- */
void play_paint(struct player *p);
void play_image_transfer(struct player *p);
void play_image_copy(struct player *p);
void play_map_image(struct player *p);

/* ---- ocl_random_volumes.c ---- */
void play_volume(struct player *p);
void volume_end(struct player *p);

/* ---- ocl_random_seldom.c: what programs do now and then ---- */
void play_seldom(struct player *p);

/* ---- ocl_random_beside.c ---- */
void play_beside(struct player *p);
/* One that calls OpenCL, once event is complete. */
void call_back(struct player *p, cl_event event);
void notes_begin(struct player *p);
void notes_end(struct player *p);
void side_end(struct player *p);
void scratch_begin(struct player *p);
void scratch_end(struct player *p);

#endif
