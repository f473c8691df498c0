/* SPDX-License-Identifier: BSD-3-Clause */
/* The calling side of one file: its control connection, and streams that join it. */
#ifndef HALE_RIO_SESSION_H
#define HALE_RIO_SESSION_H

#include <stdint.h>
#include <sys/types.h>
#include "rio/wire.h"

struct rio_session {
	int control;
	uint64_t size; /* of a file that is read, in bytes */
	unsigned char token[RIO_TOKEN];
	char node[RIO_NODE_MAX];
};

/* flags: enum rio_open_flag. 0, or -1 with errno and rio_why(), as all here. */
int rio_session_open(struct rio_session *s, const char *node, const char *path, unsigned flags,
		     mode_t mode);
/* Another stream of its file, from offset on; size: bytes to be read, or RIO_REST. The descriptor.
 */
int rio_session_join(const struct rio_session *s, uint64_t offset, uint64_t size);
/* Hears a RIO_STATE: its error becomes ours. *state may be NULL. */
int rio_session_state(int control, struct wire_head *state);
/* Asks for it (op RIO_ASK or RIO_FINISH). */
int rio_session_ask(int control, enum rio_op op, uint64_t bytes, uint64_t sum,
		    struct wire_head *state);

#endif
