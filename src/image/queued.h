/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HALE_IMAGE_QUEUED_H
#define HALE_IMAGE_QUEUED_H

#include <stdbool.h>
#include <stdint.h>

/* Once, early. False: no memory. */
bool queued_init(void);
/* Before the threads of a process are stopped: the table is empty. */
void queued_reset(void);
/* What waits for the calling thread, and for the process if that is its main thread. All signals are
 * blocked. */
void queued_collect(void);
/* In the restored process: sends what waited of that number again, to the calling thread, which was
 * tid, or to the process (0). False: nothing is known of it. */
bool queued_restore(int32_t tid, int sig);

#endif
