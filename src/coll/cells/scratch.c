/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/cells/scratch.h"

#include "base/base.h"

/* Below SMALL the heap's free lists are as quick; above LARGE the operation takes long anyway. */
enum { BLOCKS = 4, SMALL = 4096, LARGE = 4 << 20 };

static struct {
	void *p;
	size_t size;
	bool used;
} block[BLOCKS];

void *scratch_get(size_t bytes)
{
	int spare = -1;
	if (bytes <= SMALL || bytes > LARGE)
		return heap_alloc(bytes);
	for (int i = 0; i < BLOCKS; i++) {
		if (block[i].used)
			continue;
		if (block[i].size >= bytes) {
			block[i].used = true;
			return block[i].p;
		}
		if (spare < 0 || block[i].size < block[spare].size)
			spare = i;
	}
	if (spare < 0)
		return heap_alloc(bytes);
	heap_free(block[spare].p);
	block[spare].size = bytes < LARGE / 2 ? bytes * 2 : bytes;
	block[spare].p = heap_alloc(block[spare].size);
	block[spare].used = block[spare].p != NULL;
	if (!block[spare].p)
		block[spare].size = 0;
	return block[spare].p;
}

void scratch_put(void *p)
{
	for (int i = 0; p && i < BLOCKS; i++)
		if (block[i].p == p) {
			block[i].used = false;
			return;
		}
	heap_free(p);
}

void scratch_fini(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		heap_free(block[i].p);
		block[i].p = NULL;
		block[i].size = 0;
		block[i].used = false;
	}
}
