/* SPDX-License-Identifier: BSD-3-Clause */
/* The code that halecc makes of #pragma offload calls this; programs don't. A call sends the
 * variables of a statement to a device process, runs the statement there, and takes them back.
 *
 * halecc includes this before a program's own text, which may define _GNU_SOURCE after it: so only
 * headers that look at no such macro are included, except behind HALE_OFFLOAD_DEVICE. */
#ifndef HALE_OFFLOAD_PART_H
#define HALE_OFFLOAD_PART_H

#include <stddef.h>

enum { HALE_IN = 1, HALE_OUT = 2 };

struct hale_offload_part {
	const char *name;
	void *address;
	size_t size;
	long low; /* bytes from the variable's beginning to address */
	int how;
};

/* Of one source file. */
struct hale_offload_unit {
	const char *file;
	const unsigned char *object;
	size_t object_size;
	void *state;
};

/* 0: the statement has run on the device, and the variables have what comes out. -1: the caller
 * runs the statement itself; no variable that goes in has changed, and of those that only come out
 * no more than the statement writes anyhow. A line on stderr has said why, once for each device,
 * and once for statements that no device can run. Any thread may call it; it blocks until the
 * statement has ended. */
int hale_offload_run(struct hale_offload_unit *unit, int device, const char *function,
		     unsigned line, int parts, const struct hale_offload_part *part);

/* ---- on the device ---- */

enum { HALE_OFFLOAD_PARTS = 48, HALE_OFFLOAD_SMALL = 1600 /* bytes of small parts, together */ };

struct hale_offload_place {
	size_t size;
	long low;
	unsigned at, buffer; /* where it is among the small parts, or in which buffer */
};

struct hale_offload_args {
	unsigned parts, small; /* bytes */
	struct hale_offload_place place[HALE_OFFLOAD_PARTS];
	/* behind it: the small parts */
};

enum { HALE_OFFLOAD_NO_BUFFER = 0xffff };

#ifdef HALE_OFFLOAD_DEVICE
#include <hale_offload.h>

/* All else of the file is hidden, so that the linker leaves out what no statement needs. */
#define HALE_OFFLOAD_SHOWN __attribute__((visibility("default")))

/* Small parts come as arguments, and go as the result. */
static inline void hale_offload_begin(struct hale_call *c)
{
	const struct hale_offload_args *a = (const struct hale_offload_args *)c->args;

	__builtin_memcpy(c->result, a + 1, a->small);
}

static inline void *hale_offload_data(struct hale_call *c, int i)
{
	const struct hale_offload_place *p = &((const struct hale_offload_args *)c->args)->place[i];

	return p->buffer != HALE_OFFLOAD_NO_BUFFER ? c->buffer[p->buffer]
						   : (char *)c->result + p->at;
}

static inline size_t hale_offload_size(struct hale_call *c, int i)
{
	return ((const struct hale_offload_args *)c->args)->place[i].size;
}

static inline long hale_offload_low(struct hale_call *c, int i)
{
	return ((const struct hale_offload_args *)c->args)->place[i].low;
}
#endif

#endif
