/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that lives as long as one capture or one restart: a reservation of address space that
 * grows from its start and is given back as a whole. It is never part of an image. */
#ifndef HALE_IMAGE_ARENA_H
#define HALE_IMAGE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena {
	char *base;
	size_t used, usable, reserved;
};

/* Reserves `reserved` bytes at `at` (NULL: anywhere). False when there is no such space. */
bool arena_init(struct arena *a, void *at, size_t reserved);
/* Reserves `most` bytes or, where that is more than a quarter of the address space that the process
 * may still take (ulimit -v), less. */
bool arena_init_most(struct arena *a, size_t most);
void arena_fini(struct arena *a);
/* Zeroed, 64-byte aligned; NULL when memory is out. */
void *arena_alloc(struct arena *a, size_t size);
/* The same, starting on a page. */
void *arena_pages(struct arena *a, size_t size);

/* Array that grows in an arena: doubles by copying, the old copy stays behind. */
struct list {
	struct arena *arena;
	void *items;
	size_t count, cap, size;
};
void list_init(struct list *l, struct arena *a, size_t item_size);
/* A new zeroed item at the end, or NULL. Pointers to items are valid until the next call. */
void *list_add(struct list *l);
static inline void *list_at(const struct list *l, size_t i)
{
	return (char *)l->items + i * l->size;
}

/* Bytes that grow likewise. */
struct arena_bytes {
	struct arena *arena;
	char *data;
	size_t len, cap;
};
void bytes_init(struct arena_bytes *b, struct arena *a);
/* Room for len more bytes, neither touched nor counted in. NULL when memory is out. */
char *bytes_room(struct arena_bytes *b, size_t len);
/* The same, zeroed and counted in. */
void *bytes_extend(struct arena_bytes *b, size_t len);

#endif
