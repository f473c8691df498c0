// SPDX-License-Identifier: BSD-3-Clause
/* An open hash table in private memory of its own: it is part of images like all other memory, and
 * is empty in them. When it can't grow it is cleared; then some records come twice, which does no
 * harm. */
#include <string.h>
#include <sys/mman.h>

#include "image/sys.h"
#include "journal/private.h"

enum { FIRST = 1024, LARGEST = 1 << 21 };

struct known {
	uint64_t key; /* 0: free */
	uint64_t what;
};

static struct known *table;
static size_t capacity, count;

static struct known *find(struct known *t, size_t cap, uint64_t key)
{
	size_t i = key & (cap - 1);

	while (t[i].key && t[i].key != key)
		i = (i + 1) & (cap - 1);
	return &t[i];
}

unsigned known_get(uint64_t key)
{
	return count ? (unsigned)find(table, capacity, key)->what : 0;
}

static bool grow(void)
{
	size_t cap = capacity ? 2 * capacity : FIRST;

	if (cap > LARGEST)
		return false;
	long rc = sys(SYS_mmap, 0, cap * sizeof(*table), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(rc))
		return false;
	struct known *t = (struct known *)rc;
	for (size_t i = 0; i < capacity; i++)
		if (table[i].key)
			*find(t, cap, table[i].key) = table[i];
	if (table)
		sys(SYS_munmap, table, capacity * sizeof(*table));
	table = t;
	capacity = cap;
	return true;
}

void known_add(uint64_t key, unsigned what)
{
	if (2 * (count + 1) > capacity && !grow()) {
		if (!capacity)
			return;
		known_clear();
	}
	struct known *k = find(table, capacity, key);
	count += !k->key;
	k->key = key;
	k->what |= what;
}

void known_clear(void)
{
	if (count)
		memset(table, 0, capacity * sizeof(*table));
	count = 0;
}
