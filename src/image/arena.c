// SPDX-License-Identifier: BSD-3-Clause
#include "image/arena.h"

#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "image/sys.h"

enum { ARENA_STEP = 1 << 20, LEAST = 1 << 24, LIST_FIRST = 32, BYTES_FIRST = 4096 };

bool arena_init(struct arena *a, void *at, size_t reserved)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0);
	long p = sys(SYS_mmap, at, reserved, PROT_NONE, flags, -1, 0);
	if (sys_failed(p) || (at && p != (long)at))
		return false;
	*a = (struct arena){.base = (char *)p, .reserved = reserved};
	return true;
}

void arena_fini(struct arena *a)
{
	if (a->base)
		sys(SYS_munmap, a->base, a->reserved);
	*a = (struct arena){0};
}

/* What the rest of the address space is for, the program's memory that is restored among it, must
 * find room, too. */
bool arena_init_most(struct arena *a, size_t most)
{
	for (size_t size = most; size >= LEAST; size /= 4) {
		struct arena all;
		if (!arena_init(&all, NULL, 4 * size))
			continue;
		arena_fini(&all);
		if (arena_init(a, NULL, size))
			return true;
	}
	return false;
}

static void *take(struct arena *a, size_t start, size_t size)
{
	if (size > a->reserved || start > a->reserved - size)
		return NULL;
	size_t end = start + size;
	if (end > a->usable) {
		size_t usable = ALIGN_UP(end, ARENA_STEP);
		if (usable > a->reserved)
			usable = a->reserved;
		if (sys(SYS_mprotect, a->base + a->usable, usable - a->usable,
			PROT_READ | PROT_WRITE))
			return NULL;
		a->usable = usable;
	}
	a->used = end;
	return a->base + start;
}

void *arena_alloc(struct arena *a, size_t size)
{
	return take(a, ALIGN_UP(a->used, CACHE_LINE), size);
}

void *arena_pages(struct arena *a, size_t size)
{
	return take(a, ALIGN_UP(a->used, HALE_PAGE), size);
}

void list_init(struct list *l, struct arena *a, size_t item_size)
{
	*l = (struct list){.arena = a, .size = item_size};
}

void *list_add(struct list *l)
{
	if (l->count == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : LIST_FIRST;
		void *items = arena_alloc(l->arena, cap * l->size);
		if (!items)
			return NULL;
		if (l->count)
			memcpy(items, l->items, l->count * l->size);
		l->items = items;
		l->cap = cap;
	}
	return memset(list_at(l, l->count++), 0, l->size);
}

void bytes_init(struct arena_bytes *b, struct arena *a)
{
	*b = (struct arena_bytes){.arena = a};
}

char *bytes_room(struct arena_bytes *b, size_t len)
{
	if (len > b->cap - b->len) {
		size_t cap = b->cap ? 2 * b->cap : BYTES_FIRST;
		if (cap < b->len + len)
			cap = ALIGN_UP(b->len + len, BYTES_FIRST);
		char *data = arena_alloc(b->arena, cap);
		if (!data)
			return NULL;
		if (b->len)
			memcpy(data, b->data, b->len);
		b->data = data;
		b->cap = cap;
	}
	return b->data + b->len;
}

void *bytes_extend(struct arena_bytes *b, size_t len)
{
	char *p = bytes_room(b, len);
	if (!p)
		return NULL;
	b->len += len;
	return memset(p, 0, len);
}
