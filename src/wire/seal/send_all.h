/* SPDX-License-Identifier: BSD-3-Clause */
/* Send or receive exactly len bytes over a blocking socket. Its time limits (SO_RCVTIMEO,
 * SO_SNDTIMEO) say how long a silence may last. HALE_ERR_LINK with a sentence: some of the bytes
 * may have gone or come, and the connection is of no more use. err may be NULL. */
#ifndef HALE_WIRE_SEAL_SEND_ALL_H
#define HALE_WIRE_SEAL_SEND_ALL_H

#include <stddef.h>
#include <sys/types.h>
#include "base/base.h"

hale_status_t whole_say(int fd, const void *bytes, size_t len, struct error *err);
hale_status_t whole_hear(int fd, void *bytes, size_t len, struct error *err);
/* The error for a send or recv that has returned n <= 0, with errno. */
hale_status_t whole_broken(ssize_t n, struct error *err);

#endif
