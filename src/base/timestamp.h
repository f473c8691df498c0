/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of day for people and for JSON: local, ISO 8601, to the millisecond. Not for the handlers of
 * signals: localtime_r reads files. */
#ifndef HALE_BASE_TIMESTAMP_H
#define HALE_BASE_TIMESTAMP_H

#include <stdint.h>

enum { TIMESTAMP_SIZE = 40 };

/* Milliseconds since 1970 (CLOCK_REALTIME). */
int64_t timestamp_now(void);

/* That time as "2026-11-26T20:49:48.123". Returns text. */
char *timestamp_print(char text[TIMESTAMP_SIZE], int64_t ms);

#endif
