/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory comes in chunks of 256 KiB, each aligned to its size, so that masking an address finds
 * its chunk. A chunk serves objects of one size; it is carved from the bottom as it is used, so
 * that what was never handed out is never touched (and is not in an image either).
 *
 *   class[k] ──▶ chunk ──▶ chunk ──▶ …      all of them have a free or an uncarved object
 *                | header | obj | obj | free ─▶ free | (uncarved) |
 *
 * A chunk that is full leaves its list and comes back with the first free; one that becomes empty
 * goes to the pool, from where any class takes it, unless it is the only one of its class. What
 * is larger than 40 KiB has a mapping of its own that begins with the same header.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include "base/base.h"
#include "base/heap.h"

#define CHUNK_BYTES   (256ul << 10)
#define REGION_CHUNKS 4 /* mapped together */
#define HEADER_BYTES  128ul
/* a message of 32 KiB that nobody has asked for, with its header */
#define SMALL_MAX (40ul << 10)

enum { CLASS_LARGE = 255, CLASS_COUNT = 36 };

struct heap_object {
	struct heap_object *next;
};

struct heap_chunk {
	struct heap_object *free; /* given back */
	char *carve, *end;	  /* never handed out yet */
	uint32_t size;		  /* of an object */
	uint32_t live;		  /* objects handed out */
	uint32_t class_;
	bool listed;
	struct heap_chunk *next, *prev; /* in its class's list, or in the pool */
	size_t mapped;			/* large ones: length of the mapping */
};

_Static_assert(sizeof(struct heap_chunk) <= HEADER_BYTES, "objects begin behind the header");

static const uint32_t class_size[CLASS_COUNT] = {
    16,	  32,	48,   64,    128,   192,   256,	  320,	 384,	448,   512,   640,
    768,  896,	1024, 1280,  1536,  1792,  2048,  2560,	 3072,	3584,  4096,  5120,
    6144, 7168, 8192, 10240, 12288, 14336, 16384, 20480, 24576, 28672, 32768, 40960,
};

static struct {
	struct heap_chunk *list[CLASS_COUNT];
	struct heap_chunk *pool;
	size_t in_use, mapped;
} heap;

/* class of (size + 15) / 16 for sizes up to 1024; filled at the first allocation */
static uint8_t small_class[1024 / 16 + 1];
static bool ready;

static void classes_init(void)
{
	unsigned k = 0;
	for (size_t i = 0; i < ARRAY_LEN(small_class); i++) {
		while (class_size[k] < i * 16)
			k++;
		small_class[i] = (uint8_t)k;
	}
	ready = true;
}

static inline unsigned class_of(size_t size)
{
	if (LIKELY(size <= 1024))
		return small_class[(size + 15) / 16];
	/* 1024 is class 14; from there four classes to each doubling */
	size_t s = size - 1;
	unsigned log = 63 - (unsigned)__builtin_clzl(s); /* 10: 1024 … 2047 */
	unsigned k = 15 + (log - 10) * 4 + (unsigned)(s >> (log - 2) & 3);
	return k;
}

static struct heap_chunk *chunk_of(const void *p)
{
	return (struct heap_chunk *)((uintptr_t)p & ~(CHUNK_BYTES - 1));
}

/* Anonymous memory aligned to CHUNK_BYTES. */
static void *map_aligned(size_t len)
{
	size_t room = len + CHUNK_BYTES - HALE_PAGE;
	char *p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	char *start = (char *)ALIGN_UP((uintptr_t)p, CHUNK_BYTES);
	if (start > p)
		munmap(p, (size_t)(start - p));
	if (start + len < p + room)
		munmap(start + len, (size_t)(p + room - (start + len)));
	heap.mapped += len;
	return start;
}

static bool pool_fill(void)
{
	char *region = map_aligned(REGION_CHUNKS * CHUNK_BYTES);
	if (!region)
		return false;
	for (int i = REGION_CHUNKS - 1; i >= 0; i--) {
		struct heap_chunk *c = (struct heap_chunk *)(region + (size_t)i * CHUNK_BYTES);
		c->next = heap.pool;
		heap.pool = c;
	}
	return true;
}

static void list_push(struct heap_chunk *c)
{
	struct heap_chunk **head = &heap.list[c->class_];
	c->prev = NULL;
	c->next = *head;
	if (*head)
		(*head)->prev = c;
	*head = c;
	c->listed = true;
}

static void list_remove(struct heap_chunk *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		heap.list[c->class_] = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->listed = false;
}

static struct heap_chunk *chunk_new(unsigned class_)
{
	if (!heap.pool && !pool_fill())
		return NULL;
	struct heap_chunk *c = heap.pool;
	heap.pool = c->next;
	uint32_t size = class_size[class_];
	char *first = (char *)c + HEADER_BYTES;
	*c = (struct heap_chunk){.size = size, .class_ = class_, .carve = first};
	c->end = first + (CHUNK_BYTES - HEADER_BYTES) / size * size;
	list_push(c);
	return c;
}

static void *large_alloc(size_t size)
{
	if (size > PTRDIFF_MAX - 2 * CHUNK_BYTES)
		return NULL;
	size_t len = ALIGN_UP(size + HEADER_BYTES, HALE_PAGE);
	struct heap_chunk *c = map_aligned(len);
	if (!c)
		return NULL;
	c->class_ = CLASS_LARGE;
	c->mapped = len;
	heap.in_use += len - HEADER_BYTES;
	return (char *)c + HEADER_BYTES;
}

static void large_free(struct heap_chunk *c)
{
	heap.in_use -= c->mapped - HEADER_BYTES;
	heap.mapped -= c->mapped;
	munmap(c, c->mapped);
}

/* The list's first chunk has nothing on its free list: carve, or find another chunk. */
static void *alloc_slow(unsigned class_)
{
	if (UNLIKELY(!ready))
		classes_init();
	struct heap_chunk *c = heap.list[class_];
	while (c && !c->free && c->carve == c->end) {
		list_remove(c);
		c = heap.list[class_];
	}
	if (!c)
		c = chunk_new(class_);
	if (!c)
		return NULL;
	struct heap_object *o = c->free;
	if (o) {
		c->free = o->next;
	} else {
		o = (struct heap_object *)c->carve;
		c->carve += c->size;
	}
	c->live++;
	heap.in_use += c->size;
	return o;
}

void *heap_alloc(size_t size)
{
	if (UNLIKELY(size > SMALL_MAX))
		return large_alloc(size);
	if (UNLIKELY(!ready))
		classes_init();
	unsigned k = class_of(size);
	struct heap_chunk *c = heap.list[k];
	if (LIKELY(c && c->free)) {
		struct heap_object *o = c->free;
		c->free = o->next;
		c->live++;
		heap.in_use += c->size;
		return o;
	}
	return alloc_slow(k);
}

void *heap_calloc(size_t count, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(count, size, &total))
		return NULL;
	void *p = heap_alloc(total);
	if (p && total <= SMALL_MAX) /* a fresh mapping is zero already */
		memset(p, 0, total);
	return p;
}

/* A chunk changed from full to not, or has nothing live any more. */
static void free_slow(struct heap_chunk *c)
{
	if (!c->listed)
		list_push(c);
	if (c->live || (heap.list[c->class_] == c && !c->next))
		return;
	list_remove(c);
	c->next = heap.pool;
	heap.pool = c;
}

void heap_free(void *p)
{
	if (!p)
		return;
	struct heap_chunk *c = chunk_of(p);
	if (UNLIKELY(c->class_ == CLASS_LARGE)) {
		large_free(c);
		return;
	}
	struct heap_object *o = p;
	o->next = c->free;
	c->free = o;
	c->live--;
	heap.in_use -= c->size;
	if (UNLIKELY(!c->listed || !c->live))
		free_slow(c);
}

/* Grows or shrinks a large mapping where it stands; false if something is in the way. */
static bool large_resize(struct heap_chunk *c, size_t size)
{
	if (size > PTRDIFF_MAX - 2 * CHUNK_BYTES)
		return false;
	size_t len = ALIGN_UP(size + HEADER_BYTES, HALE_PAGE);
	if (len != c->mapped && mremap(c, c->mapped, len, 0) == MAP_FAILED)
		return false;
	heap.in_use += len - c->mapped;
	heap.mapped += len - c->mapped;
	c->mapped = len;
	return true;
}

void *heap_realloc(void *p, size_t size)
{
	if (!p)
		return heap_alloc(size);
	struct heap_chunk *c = chunk_of(p);
	size_t have;
	if (c->class_ == CLASS_LARGE) {
		if (size > SMALL_MAX && large_resize(c, size))
			return p;
		have = c->mapped - HEADER_BYTES;
	} else {
		if (size <= SMALL_MAX && class_of(size) == c->class_)
			return p;
		have = c->size;
	}
	void *q = heap_alloc(size);
	if (!q)
		return NULL;
	memcpy(q, p, have < size ? have : size);
	heap_free(p);
	return q;
}

void heap_stats(size_t *in_use, size_t *mapped)
{
	if (in_use)
		*in_use = heap.in_use;
	if (mapped)
		*mapped = heap.mapped;
}
