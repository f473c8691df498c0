/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's own heap inside the user's process.
 *
 * malloc can't serve: a checkpoint may interrupt the program inside malloc, and then the library
 * drains messages, which needs memory. So the library's objects live here, in anonymous private
 * mappings that images capture like everything else. Size classes with free lists up to 32 KiB,
 * whole mappings above. Not locked: the caller is inside the library (ckpt/guard.h) and is alone.
 */
#ifndef HALE_BASE_HEAP_H
#define HALE_BASE_HEAP_H

#include <stddef.h>

/* 16-byte aligned memory (64-byte aligned from 64 bytes on), or NULL when the system has none. */
void *heap_alloc(size_t size);
void *heap_calloc(size_t count, size_t size);
void *heap_realloc(void *p, size_t size);
void heap_free(void *p); /* NULL is fine */

/* Bytes handed out and not yet freed, and bytes mapped: for leak tests. */
void heap_stats(size_t *in_use, size_t *mapped);

#endif
