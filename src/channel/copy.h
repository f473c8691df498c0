/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of a few bytes without a call. */
#ifndef HALE_CHANNEL_COPY_H
#define HALE_CHANNEL_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { COPY_SMALL_MAX = 32 };

/* n <= COPY_SMALL_MAX bytes, by two moves that may overlap. */
static inline void copy_small(void *to, const void *from, size_t n)
{
	unsigned char *t = to;
	const unsigned char *f = from;
	if (n >= 16) {
		unsigned __int128 a, b;
		memcpy(&a, f, 16);
		memcpy(&b, f + n - 16, 16);
		memcpy(t, &a, 16);
		memcpy(t + n - 16, &b, 16);
	} else if (n >= 8) {
		uint64_t a, b;
		memcpy(&a, f, 8);
		memcpy(&b, f + n - 8, 8);
		memcpy(t, &a, 8);
		memcpy(t + n - 8, &b, 8);
	} else if (n >= 4) {
		uint32_t a, b;
		memcpy(&a, f, 4);
		memcpy(&b, f + n - 4, 4);
		memcpy(t, &a, 4);
		memcpy(t + n - 4, &b, 4);
	} else {
		for (size_t i = 0; i < n; i++)
			t[i] = f[i];
	}
}

#endif
