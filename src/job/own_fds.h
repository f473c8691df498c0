/* SPDX-License-Identifier: BSD-3-Clause */
/* Which descriptors of a rank are the library's, so that they don't stand in a checkpoint's way. */
#ifndef HALE_JOB_OWN_FDS_H
#define HALE_JOB_OWN_FDS_H

#include <sys/types.h>
#include "job/segment.h"

/* An array of them, to be freed by the caller, and its length; NULL: there are none, or no memory.
 * While a rank has connections to other nodes this counts every socket among them (and what event
 * loops are made of): it closes its own before its image is taken, and what is left then is looked
 * at again by the rank itself. */
int *own_fds(pid_t pid, const struct mailbox *m, size_t *count);

#endif
