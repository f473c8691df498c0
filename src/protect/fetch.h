/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads memory whose pages are slow to touch.
 *
 * On a virtual machine within another one the first access of a program to a page costs some 15 us,
 * also where a system call has filled the page before. Several threads at once pay no less. A
 * program pays that anyway, but while other threads of it compute; a scan before the computation
 * pays it in addition. The kernel's own way to the page costs nothing of the kind: it copies 2 MB
 * in 0.3 ms that take 7 ms to touch. */
#ifndef HALE_PROTECT_FETCH_H
#define HALE_PROTECT_FETCH_H

#include <stdbool.h>
#include <stddef.h>

#define FETCH_BYTES_MAX ((size_t)256 << 10) /* in one window */

/* Whether the first pages of these bytes were slow to touch, which they are no more. */
bool fetch_pays(const void *base, size_t bytes);

struct fetch_window {
	const char *at; /* the bytes to read */
	int room;	/* the copy's, or -1: `at` is where the bytes are */
};

/* The bytes by the kernel, or where they are, if the kernel refuses, they are more than
 * FETCH_BYTES_MAX, or no room is free. Any thread, followed by fetch_close(). */
struct fetch_window fetch_open(const void *from, size_t bytes);
void fetch_close(struct fetch_window w);

#endif
