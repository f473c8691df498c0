/* SPDX-License-Identifier: BSD-3-Clause */
/* A layout as a row of 64-bit numbers, so that another process can build the same one: one-sided
 * communication tells the target where in its window the bytes lie. The row is as short as the
 * layout's program, not as long as the list of its runs.
 *
 *	ref   = offset, size, node
 *	node  = 0                                  a run
 *	      | 1, rounds, stride, ref             a loop, its child at offset 0
 *	      | 2, parts, ref, ref, …              a list
 */
#ifndef HALE_OBJECT_LAYOUT_WIRE_H
#define HALE_OBJECT_LAYOUT_WIRE_H

#include "object/layout.h"

/* How many numbers r takes. */
size_t layout_wire_count(struct layout_ref r);
/* Writes them; returns the place behind them. */
int64_t *layout_wire_write(struct layout_ref r, int64_t *out);
/* Builds the layout of count numbers; *out is the caller's. False: no memory, or no layout. */
bool layout_wire_read(const int64_t *in, size_t count, struct layout_ref *out);

#endif
