/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the stream of a live image comes from and goes to. */
#ifndef HALE_CKPT_MIGRATE_STREAM_H
#define HALE_CKPT_MIGRATE_STREAM_H

#include <stdbool.h>
#include "base/error.h"

/* "@NAME": connects to an abstract stream socket of this user, which is the stream, or (given) says
 * MIGRATE_GIVEN and hands it over; otherwise creates a file. -1 with err. */
int migrate_stream_source(const char *name, bool given, struct error *err);
/* The other end. At "@NAME" somebody says one byte: MIGRATE_RELAY, this connection is the stream;
 * or the stream comes as a descriptor with that byte: MIGRATE_DIRECT, the source's own connection,
 * or MIGRATE_GIVEN, one between hosts. */
int migrate_stream_sink(const char *name, bool *direct, struct error *err);

#endif
