/* SPDX-License-Identifier: BSD-3-Clause */
/* hale's own stdout or stderr, as the place where the ranks' output goes. A reader that is slow
 * holds the ranks up, as it would without hale; it never blocks the event loop. One that went
 * away is told of once, and what would go to it is dropped: the job goes on. */
#ifndef HALE_JOB_OUTLET_H
#define HALE_JOB_OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include "job/loop.h"

enum { OUTLET_FULL = 1 << 20 };

struct outlet {
	int fd;
	const char *name; /* "stdout" */
	struct loop *loop;
	struct loop_source source; /* waits for room while there is something to write */
	bool plain_file;	   /* never makes us wait */
	bool broken;
	char *bytes; /* [begin, end) waits */
	size_t begin, end, cap;
	void (*drained)(void *arg); /* it was full and has room again */
	void *arg;
	bool was_full;
};

void outlet_init(struct outlet *o, struct loop *loop, int fd, const char *name,
		 void (*drained)(void *arg), void *arg);
void outlet_fini(struct outlet *o);

/* Takes all of it. The caller stops producing while outlet_full(). */
void outlet_write(struct outlet *o, const void *bytes, size_t len);
bool outlet_full(struct outlet *o);
bool outlet_empty(const struct outlet *o);
/* Waits until everything is written, or the reader is gone. */
void outlet_flush(struct outlet *o);

#endif
