/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands between a source and a sink and passes their frames on, but for one. */
#ifndef HALE_IMAGE_TEST_RELAY_H
#define HALE_IMAGE_TEST_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "image/test/scenario.h"

struct fixture {
	char dir[PATH_LEN];
	char said[4096]; /* stdout and stderr of all processes of a run */
	pid_t source, sink;
	pid_t older;  /* a copy that stands beside the sink, which may take its pages; 0: none */
	pid_t beside; /* … of the sink that is being started */
	int source_fd, sink_fd; /* the relay's ends; -1: closed */
	int out;
	int source_status, sink_status; /* as waitpid gives it; -1: it runs */
};

enum { TO_SINK, TO_SOURCE };

enum deed {
	PASS,
	KILL_SINK,
	KILL_SOURCE,
	CUT,
	FLIP_HEAD,
	FLIP_TABLE,
	FLIP_DATA,
	SWALLOW,
	APPEND,
	RESIGN,
	SLOW, /* every frame of its kind, as over a slow link */
};

/* What is done to the nth frame of a kind that goes one way. */
struct relay_fault {
	enum deed deed;
	int way;
	unsigned kind, nth;
};

/* Frames of compressed pages that have passed. */
extern unsigned relay_packed;
/* RESIGN: this byte of the table is another one, and the checksums fit. */
extern size_t relay_resign_at;

/* Until one end closes. Then, if tells, it makes sure that the sink has ended, and says so to the
 * source, as who started it would. */
void relay(struct fixture *f, const struct relay_fault *fault, bool tells);
bool relay_write(int fd, const char *p, size_t len);

#endif
