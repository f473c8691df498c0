/* SPDX-License-Identifier: BSD-3-Clause */
/* Combining what several members have deposited, in the tree of coll.h. While deposits are combined
 * in place there is no safe point: they are waited for beforehand. */
#ifndef HALE_COLL_CELLS_FOLD_H
#define HALE_COLL_CELLS_FOLD_H

#include "coll/cells/cells.h"

enum { FOLD_STACK = 1024 };

/* The combination of a range of elements of several members' deposits under k. Addresses of
 * elements are as in MPI: data begins true_lb after them. */
struct fold {
	struct coll_home *h;
	uint64_t k;
	struct op *op;
	struct datatype *type;
	const char *own;     /* this process's elements; NULL: its deposit in the cell */
	bool own_in_out;     /* they are where the result goes */
	size_t first, count; /* the chunk at work */
	char *scratch;	     /* partial results, one a level, and a copy of own elements */
	size_t stride;
	const char *own_chunk;
	char stack[FOLD_STACK] __attribute__((aligned(CACHE_LINE)));
};

void fold_init(struct fold *f, struct coll_home *h, uint64_t k, const struct coll_args *a);
/* Elements [first, first + count) of members [lo, hi) to the same elements at out. */
int fold_range(struct fold *f, int lo, int hi, size_t first, size_t count, char *out);
static inline int fold_run(struct fold *f, int hi, size_t first, size_t count, char *out)
{
	return fold_range(f, 0, hi, first, count, out);
}
/* An image of count elements to combine into, when the user's buffer has gaps that aren't ours or
 * is still being read; NULL: no memory. block: for scratch_put. */
char *fold_image(const struct datatype *t, size_t count, void **block);
/* From such an image to count elements of the user's buffer. */
void fold_give(const struct coll_args *a, void *to, const char *from, size_t count);
/* fold_run into the user's buffer, through an image if that has gaps. */
int fold_deliver(struct fold *f, const struct coll_args *a, int hi, size_t first, size_t count,
		 void *to);

#endif
