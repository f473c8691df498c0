/* SPDX-License-Identifier: BSD-3-Clause */
/* All bytes or none, over a blocking socket whose time limits (SO_RCVTIMEO, SO_SNDTIMEO) say how
 * long a silence may last. Errors: HALE_ERR_LINK with a sentence; err may be NULL. */
#ifndef HALE_WIRE_SEAL_SEND_ALL_H
#define HALE_WIRE_SEAL_SEND_ALL_H

#include <stddef.h>
#include <sys/types.h>
#include "base/base.h"

hale_status_t whole_say(int fd, const void *bytes, size_t len, struct error *err);
hale_status_t whole_hear(int fd, void *bytes, size_t len, struct error *err);
/* What send or recv that returned n <= 0 (errno) means. */
hale_status_t whole_broken(ssize_t n, struct error *err);

#endif
