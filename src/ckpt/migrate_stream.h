/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the stream of a live image comes from and goes to. */
#ifndef HALE_CKPT_MIGRATE_STREAM_H
#define HALE_CKPT_MIGRATE_STREAM_H

#include <stdbool.h>
#include "base/error.h"

/* "@NAME": connects to an abstract stream socket of this user; otherwise creates a file. -1 with
 * err. */
int migrate_stream_source(const char *name, struct error *err);
/* The other end. At "@NAME" somebody says one byte: MIGRATE_RELAY, this connection is the stream;
 * or MIGRATE_DIRECT, it comes as a descriptor with that byte. */
int migrate_stream_sink(const char *name, bool *direct, struct error *err);

#endif
