/* SPDX-License-Identifier: BSD-3-Clause */
#include "offload/device/arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "base/base.h"

bool store_map(const struct local_store *s)
{
	void *at = mmap((void *)ARENA_AT, s->size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	return at == (void *)ARENA_AT;
}

uint64_t store_alloc(struct local_store *s, uint64_t size)
{
	uint64_t at = ARENA_AT;
	unsigned i = 0;

	if (size == 0 || size > s->size) {
		errno = size ? ENOSPC : EINVAL;
		return 0;
	}
	for (; i < s->count && s->range[i].address - at < size; i++)
		at = s->range[i].address + ALIGN_UP(s->range[i].size, HALE_PAGE);
	if (s->count == OFFLOAD_RANGES || (i == s->count && ARENA_AT + s->size - at < size)) {
		errno = ENOSPC;
		return 0;
	}
	memmove(&s->range[i + 1], &s->range[i], (s->count - i) * sizeof(s->range[0]));
	s->count++;
	s->range[i] = (struct offload_range){at, size};
	return at;
}

static int find(const struct local_store *s, uint64_t address)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->range[i].address == address)
			return (int)i;
	return -1;
}

bool store_free(struct local_store *s, uint64_t address)
{
	int i = find(s, address);

	if (i < 0)
		return false;
	/* given back to the system: the next buffer there begins with 0 */
	madvise((void *)address, ALIGN_UP(s->range[i].size, HALE_PAGE), MADV_DONTNEED);
	s->count--;
	memmove(&s->range[i], &s->range[i + 1], (s->count - (unsigned)i) * sizeof(s->range[0]));
	return true;
}

uint64_t store_size_of(const struct local_store *s, uint64_t address)
{
	int i = find(s, address);

	return i < 0 ? 0 : s->range[i].size;
}

bool store_has(const struct local_store *s, uint64_t address, uint64_t size)
{
	for (unsigned i = 0; i < s->count; i++)
		if (address >= s->range[i].address && size <= s->range[i].size &&
		    address - s->range[i].address <= s->range[i].size - size)
			return true;
	return false;
}
