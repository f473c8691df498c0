/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for host data in the log. Pieces of hundreds of kilobytes come and go; most of what malloc
 * would cost for them is page faults, so some memory that was touched already is kept. Large pages
 * were tried: where the machine is a virtual one they cost more than twice as much. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "base/base.h"
#include "ocl/ocl.h"

/* Slabs lie at multiples of their size, so that a pointer tells its slab. */
static const size_t slab_bytes = 4ul << 20;
static const size_t small = 64ul << 10;
static const size_t spare_bytes = 1024ul << 20;
enum { HEAD = 64 };

struct slab {
	size_t bytes, used;
	uint32_t refs;
	struct slab *next; /* spare ones */
};

static struct slab *current, *spare;
static size_t spared; /* bytes */

static struct slab *slab_new(size_t bytes)
{
	size_t whole = bytes + slab_bytes;
	char *p = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = (char *)ALIGN_UP((uintptr_t)p, slab_bytes);

	if (p == MAP_FAILED)
		return NULL;
	if (at > p)
		munmap(p, (size_t)(at - p));
	if (at + bytes < p + whole)
		munmap(at + bytes, (size_t)(p + whole - at) - bytes);
	*(struct slab *)at = (struct slab){.bytes = bytes, .used = HEAD};
	return (struct slab *)at;
}

/* Programs write the same objects again and again: what fits is there. */
static struct slab *slab_get(size_t bytes)
{
	for (struct slab **at = &spare, *s; (s = *at); at = &s->next) {
		if (s->bytes != bytes)
			continue;
		*at = s->next;
		spared -= bytes;
		return s;
	}
	return slab_new(bytes);
}

static void *take(struct slab *s, size_t size)
{
	char *p = (char *)s + s->used;

	s->used += ALIGN_UP(size, HEAD);
	s->refs++;
	return p;
}

void *ocl_pool_take(size_t size)
{
	struct slab *s = current;

	if (size < small)
		return malloc(size ? size : 1);
	if (size > slab_bytes / 2) {
		s = slab_get(ALIGN_UP(size + HEAD, slab_bytes / 2));
		return s ? take(s, size) : NULL;
	}
	if (!s || s->used + ALIGN_UP(size, HEAD) > s->bytes) {
		s = slab_get(slab_bytes);
		if (!s)
			return NULL;
		current = s;
	}
	return take(s, size);
}

void ocl_pool_give(void *p, size_t size)
{
	struct slab *s = (struct slab *)((uintptr_t)p & ~(slab_bytes - 1));

	if (size < small) {
		free(p);
		return;
	}
	if (--s->refs > 0)
		return;
	s->used = HEAD;
	if (s == current)
		return;
	if (spared + s->bytes > spare_bytes) {
		munmap(s, s->bytes);
		return;
	}
	s->next = spare;
	spare = s;
	spared += s->bytes;
}

void ocl_pool_trim(void)
{
	for (struct slab *s = spare; s; s = s->next)
		madvise((char *)s + HALE_PAGE, s->bytes - HALE_PAGE, MADV_DONTNEED);
}
