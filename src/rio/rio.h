/* SPDX-License-Identifier: BSD-3-Clause */
/* rio/: files of other nodes as descriptors (include/hale/rio.h), and the daemon of a node that
 * serves them, `hale device serve`. docs/rio.md has states and invariants.
 * May call: base/, wire/seal/. Called by: offload/, cli/. Two programs have it: libhale_rio.so has
 * the calling side, `hale` both. */
#ifndef HALE_RIO_RIO_H
#define HALE_RIO_RIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "rio/wire.h"

/* ---- the calling side ---- */

/* An authenticated connection to the daemon of a node; -1 with errno and rio_why(). */
int rio_call(const char *node);
/* The i-th entry of HALE_DEVICES: its name; NULL: there are fewer. */
const char *rio_node_name(unsigned i, char name[RIO_NODE_MAX]);

/* Sets errno and what rio_why() says; returns -1. */
int rio_fail(int error, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct rio_copy {
	const char *node, *far, *near; /* far: its path there; near: a local one */
	unsigned streams;	       /* connections side by side; 1 to RIO_STREAMS_MAX */
	bool to_node, sync;
	uint64_t bytes; /* afterwards: how many were copied */
};
/* Copies a file; checked by hashes of its blocks, under its name only when it is whole. 0, or -1
 * with errno and rio_why(). */
int rio_copy(struct rio_copy *c);

/* ---- the daemon ---- */

/* What a connection is for, by the operation of its first message. */
struct rio_service {
	uint16_t first, last;
	/* In a thread of its own; fd stays the caller's, which closes it, unless true is returned.
	 */
	bool (*serve)(int fd, const struct wire_head *h, const void *payload);
};

struct rio_daemon {
	const char *root;		    /* folder of the files */
	const char *listen;		    /* "ADDRESS:PORT", "[ADDRESS]:PORT"; port 0: any */
	const struct rio_service *services; /* besides the files; ends with first == 0 */
	int end;			    /* readable: to end */
	void (*ready)(const char *address); /* where it listens */
};
/* Serves until end is readable. 0, or an exit status after a sentence. */
int rio_serve(const struct rio_daemon *d);

#endif
