/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of vectors over nodes: reduce, allreduce, reduce_scatter. */
#ifndef HALE_COLL_HIER_VECTOR_H
#define HALE_COLL_HIER_VECTOR_H

#include "coll/hier/hier.h"

/* Where the elements of a rank begin in the vector that is combined; of all ranks: its length. */
static inline size_t hier_vector_first(const struct coll_args *a, int rank)
{
	size_t at = 0;
	if (!a->rcounts)
		return a->rcount * (size_t)rank;
	for (int i = 0; i < rank; i++)
		at += coll_share(a, i);
	return at;
}
static inline size_t hier_vector_length(const struct coll_args *a)
{
	return a->kind == COLL_REDUCE_SCATTER ? hier_vector_first(a, a->comm->size) : a->rcount;
}

/* Can elements of the type go through the cells at all? */
bool hier_vector_suits(const struct coll_args *a);
int hier_vector(struct coll_home *h, const struct coll_args *a);

#endif
