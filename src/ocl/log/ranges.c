/* SPDX-License-Identifier: BSD-3-Clause */
#include "ocl/log/ranges.h"
#include <stdlib.h>
#include <string.h>

/* The first that ends at from or behind it. */
static uint32_t find(const struct ranges *r, size_t from)
{
	uint32_t low = 0, high = r->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (r->at[middle].to >= from)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static bool make_room(struct ranges *r)
{
	uint32_t room = r->room ? 2 * r->room : 16;
	struct ranges_range *more;

	if (r->count < r->room)
		return true;
	more = realloc(r->at, room * sizeof(*more));
	if (!more)
		return false;
	r->at = more;
	r->room = room;
	return true;
}

void ranges_add(struct ranges *r, const void *at, size_t size)
{
	size_t from = (size_t)at, to = from + size;
	uint32_t i = find(r, from), end = i;

	if (size == 0)
		return;
	while (end < r->count && r->at[end].from <= to)
		end++;
	if (i == end) {
		if (!make_room(r)) {
			r->all = true;
			return;
		}
		memmove(&r->at[i + 1], &r->at[i], (r->count - i) * sizeof(*r->at));
		r->at[i] = (struct ranges_range){from, to};
		r->count++;
		return;
	}
	if (r->at[i].from < from)
		from = r->at[i].from;
	if (r->at[end - 1].to > to)
		to = r->at[end - 1].to;
	r->at[i] = (struct ranges_range){from, to};
	memmove(&r->at[i + 1], &r->at[end], (r->count - end) * sizeof(*r->at));
	r->count -= end - i - 1;
}

bool ranges_meet(const struct ranges *r, const void *at, size_t size)
{
	size_t from = (size_t)at;
	uint32_t i = find(r, from + 1);

	return size > 0 && (r->all || (i < r->count && r->at[i].from < from + size));
}

void ranges_clear(struct ranges *r)
{
	r->count = 0;
	r->all = false;
}

void ranges_fini(struct ranges *r)
{
	free(r->at);
	*r = (struct ranges){0};
}
