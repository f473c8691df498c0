/* SPDX-License-Identifier: BSD-3-Clause */
/* A set of addresses, as ranges that don't meet, in their order. */
#ifndef HALE_OCL_RANGES_H
#define HALE_OCL_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ranges_range {
	size_t from, to; /* to is behind it */
};

struct ranges {
	struct ranges_range *at;
	uint32_t count, room;
	bool all; /* there was no memory to tell which */
};

/* A size of 0 adds nothing. */
void ranges_add(struct ranges *r, const void *at, size_t size);
bool ranges_meet(const struct ranges *r, const void *at, size_t size);
/* Nothing is in it any more; its memory stays. */
void ranges_clear(struct ranges *r);
void ranges_fini(struct ranges *r);

#endif
