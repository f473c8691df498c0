// SPDX-License-Identifier: BSD-3-Clause
/* Memory of messages. Long ones have a mapping each (base/heap.c), whose pages cost more to get
 * than to fill. So some that are free are held for the next ones; images have none of them, since
 * they are given back when all stand still. */
#include "deliver/replicas.h"

enum {
	LONG = 32 << 10, /* shorter ones are the heap's affair */
	SPARES = 8,
	SPARE_BYTES = 16 << 20, /* of all of them */
};

static struct {
	struct kept *at[SPARES];
	unsigned n;
	size_t bytes;
} spare;

static struct kept *spare_remove(unsigned i)
{
	struct kept *k = spare.at[i];

	spare.at[i] = spare.at[--spare.n];
	spare.bytes -= k->room;
	return k;
}

/* The smallest that has room, unless most of it would be in vain. */
static struct kept *spare_find(size_t length)
{
	unsigned best = SPARES;

	for (unsigned i = 0; i < spare.n; i++)
		if (spare.at[i]->room >= length && spare.at[i]->room / 2 <= length &&
		    (best == SPARES || spare.at[i]->room < spare.at[best]->room))
			best = i;
	return best < SPARES ? spare_remove(best) : NULL;
}

struct kept *kept_alloc(size_t length)
{
	struct kept *k = length > LONG ? spare_find(length) : NULL;

	if (k)
		return k;
	k = replica_memory(sizeof(*k) + length);
	k->room = length;
	return k;
}

void kept_free(struct kept *k)
{
	if (!k || k->room <= LONG || k->room > SPARE_BYTES) {
		heap_free(k);
		return;
	}
	while (spare.n == SPARES || spare.bytes + k->room > SPARE_BYTES)
		heap_free(spare_remove(0));
	spare.at[spare.n++] = k;
	spare.bytes += k->room;
}

void blocks_forget(void)
{
	while (spare.n > 0)
		heap_free(spare_remove(0));
}
