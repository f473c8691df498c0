/* SPDX-License-Identifier: BSD-3-Clause */
/* Quantities as people write them: "5s", "500ms", "2min", "1h", "64MiB", "4GB", "12". */
#ifndef HALE_BASE_UNITS_H
#define HALE_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* Seconds; a bare number is seconds. us ms s min h d. False on garbage, negatives, overflow. */
bool units_parse_seconds(const char *text, double *seconds);

/* Bytes; a bare number is bytes. B kB MB GB TB (powers of ten), KiB MiB GiB TiB, K M G T (powers
 * of two). False on garbage, negatives, overflow. */
bool units_parse_bytes(const char *text, uint64_t *bytes);

/* A decimal integer that fills the whole text and lies in [min, max]. */
bool units_parse_int(const char *text, long min, long max, long *value);

/* "1.2 GiB", "340 ms": for people; buf of at least 16 bytes; returns buf. Not signal-safe. */
const char *units_show_bytes(uint64_t bytes, char *buf);
const char *units_show_seconds(double seconds, char *buf);

#endif
