/* SPDX-License-Identifier: BSD-3-Clause */
/* One bit of memory that may be gone in the next moment: a program frees what faults are injected
 * into when it likes. */
#ifndef PROTECT_FLIP_H
#define PROTECT_FLIP_H

#include <stdbool.h>

/* Whether there is memory now. */
bool flip_can(const char *at);

/* Flips bit 0 to 7 of the byte, atomically. False: there is no such memory that may be written. */
bool flip_bit(char *at, int bit);

#endif
