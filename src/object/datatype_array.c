/* SPDX-License-Identifier: BSD-3-Clause */
/* Subarrays and distributed arrays: one loop a dimension, from the fastest to the slowest. */
#include "object/datatype.h"

/* What has been built so far: the layout of one index of the next dimension. */
struct slice {
	struct layout_ref data;
	ptrdiff_t stride; /* from one index of the next dimension to the next */
	size_t count;	  /* elements of the old type */
};

static void slice_start(struct slice *s, const struct datatype *old)
{
	*s = (struct slice){.data = old->data, .stride = old->extent, .count = 1};
	layout_retain(s->data);
}

static struct datatype *slice_finish(struct slice *s, const struct datatype *old)
{
	struct signature_ref elements;
	if (!signature_repeat(old->elements, s->count, &elements)) {
		layout_release(s->data);
		return NULL;
	}
	struct datatype *t = datatype_make(s->data, elements);
	if (!t)
		return NULL;
	t->align = old->align;
	t->lb_marked = t->ub_marked = true;
	datatype_set_bounds(t, 0, s->stride);
	return t;
}

/* Indices [start, start + n) of a dimension of `size`. */
static bool slice_range(struct slice *s, size_t size, size_t start, size_t n)
{
	struct layout_ref wider;
	const bool ok = layout_repeat(s->data, n, s->stride, &wider);
	layout_release(s->data);
	if (!ok)
		return false;
	s->data = wider;
	s->data.offset += (ptrdiff_t)start * s->stride;
	s->stride *= (ptrdiff_t)size;
	s->count *= n;
	return true;
}

/* Every parts-th block of `block` indices of a dimension of `size`, beginning with number `part`.
 */
static bool slice_cyclic(struct slice *s, size_t size, size_t block, size_t part, size_t parts)
{
	const size_t start = part * block, step = parts * block;
	if (start >= size)
		return slice_range(s, size, 0, 0);
	const size_t whole = size - start >= block ? (size - start - block) / step + 1 : 0;
	const size_t next = start + whole * step; /* the first one that is not whole */
	const size_t rest = next < size ? size - next : 0;
	struct layout_ref one, all, tail;
	bool ok = layout_repeat(s->data, block, s->stride, &one);
	if (ok) {
		ok = layout_repeat(one, whole, (ptrdiff_t)step * s->stride, &all);
		layout_release(one);
	}
	if (ok && !layout_repeat(s->data, rest, s->stride, &tail)) {
		layout_release(all);
		ok = false;
	}
	layout_release(s->data);
	if (!ok)
		return false;
	all.offset += (ptrdiff_t)start * s->stride;
	tail.offset += (ptrdiff_t)next * s->stride;
	struct layout_builder b = {0};
	layout_append(&b, all);
	layout_append(&b, tail);
	s->stride *= (ptrdiff_t)size;
	s->count *= whole * block + rest;
	return layout_finish(&b, &s->data);
}

/* In the order of dimensions, `order` says where the fastest one is. */
static int slice_dimension(int i, int ndims, int order)
{
	return order == MPI_ORDER_C ? ndims - 1 - i : i;
}

struct datatype *datatype_make_subarray(const struct datatype *old, int ndims,
					const MPI_Count *sizes, const MPI_Count *subsizes,
					const MPI_Count *starts, int order)
{
	struct slice s;
	slice_start(&s, old);
	for (int i = 0; i < ndims; i++) {
		const int d = slice_dimension(i, ndims, order);
		if (!slice_range(&s, (size_t)sizes[d], (size_t)starts[d], (size_t)subsizes[d]))
			return NULL;
	}
	return slice_finish(&s, old);
}

/* This process's share of one dimension, as MPI-3.1 4.1.4 defines it. */
static bool slice_distribute(struct slice *s, MPI_Count size, int distrib, int darg, int part,
			     int parts)
{
	const bool dflt = darg == MPI_DISTRIBUTE_DFLT_DARG;
	if (distrib == MPI_DISTRIBUTE_NONE)
		return slice_range(s, (size_t)size, 0, (size_t)size);
	if (distrib == MPI_DISTRIBUTE_CYCLIC)
		return slice_cyclic(s, (size_t)size, dflt ? 1 : (size_t)darg, (size_t)part,
				    (size_t)parts);
	const MPI_Count block = dflt ? (size + parts - 1) / parts : darg;
	const MPI_Count start = block * part;
	const MPI_Count n = start >= size ? 0 : start + block > size ? size - start : block;
	return slice_range(s, (size_t)size, (size_t)(n ? start : 0), (size_t)n);
}

struct datatype *datatype_make_darray(const struct datatype *old, int nprocs, int rank, int ndims,
				      const MPI_Count *sizes, const int *distribs, const int *dargs,
				      const int *psizes, int order)
{
	struct slice s;
	slice_start(&s, old);
	for (int i = 0; i < ndims; i++) {
		const int d = slice_dimension(i, ndims, order);
		/* the process grid is in row-major order, whatever the array's order is */
		int below = 1;
		for (int k = d + 1; k < ndims; k++)
			below *= psizes[k];
		const int part = rank / below % psizes[d];
		if (!slice_distribute(&s, sizes[d], distribs[d], dargs[d], part, psizes[d]))
			return NULL;
	}
	return slice_finish(&s, old);
}
