/* SPDX-License-Identifier: BSD-3-Clause */
/* The constructors. Bounds follow MPI-3.1 4.1.6: explicit marks (MPI_LB, MPI_UB, resized) win over
 * natural bounds and are inherited; a natural upper bound is rounded up so that the extent is a
 * multiple of the strictest alignment of the basic elements. */
#include "object/datatype.h"

#include <string.h>

struct datatype *datatype_make(struct layout_ref data, struct signature_ref elements)
{
	struct datatype *t = heap_calloc(1, sizeof(*t));
	if (!t) {
		layout_release(data);
		signature_release(elements);
		return NULL;
	}
	object_init(&t->obj, OBJECT_DATATYPE);
	t->handles = 1;
	t->data = data;
	t->elements = elements;
	t->size = data.size;
	t->nblocks = layout_runs(data);
	if (data.size) {
		ptrdiff_t high;
		layout_range(data, &t->true_lb, &high);
		t->true_extent = high - t->true_lb;
	}
	t->align = 1;
	return t;
}

void datatype_set_bounds(struct datatype *t, ptrdiff_t lb, ptrdiff_t ub)
{
	t->lb = lb;
	t->extent = ub - lb;
	t->contiguous = t->size == 0 ||
			(!t->data.node && t->data.offset == 0 && t->extent == (ptrdiff_t)t->size);
}

static void mark_lb(struct datatype_builder *b, ptrdiff_t offset)
{
	if (!b->lb_marked || offset < b->marked_lb)
		b->marked_lb = offset;
	b->lb_marked = true;
}

static void mark_ub(struct datatype_builder *b, ptrdiff_t offset)
{
	if (!b->ub_marked || offset > b->marked_ub)
		b->marked_ub = offset;
	b->ub_marked = true;
}

/* count copies of old, `stride` apart, the first at offset; the bounds only. */
static void bound(struct datatype_builder *b, const struct datatype *old, size_t count,
		  ptrdiff_t stride, ptrdiff_t offset)
{
	if (count == 0)
		return;
	const ptrdiff_t last = offset + (ptrdiff_t)(count - 1) * stride;
	const ptrdiff_t first_lb = (last < offset ? last : offset) + old->lb;
	const ptrdiff_t last_ub = (last > offset ? last : offset) + old->lb + old->extent;
	if (old->lb_marked)
		mark_lb(b, first_lb);
	if (old->ub_marked)
		mark_ub(b, last_ub);
	if (old->size == 0) /* nothing but marks, if that */
		return;
	if (old->align > b->align)
		b->align = old->align;
	b->lb = !b->bounded || first_lb < b->lb ? first_lb : b->lb;
	b->ub = !b->bounded || last_ub > b->ub ? last_ub : b->ub;
	b->bounded = true;
}

static void finish_bounds(struct datatype *t, const struct datatype_builder *b)
{
	const ptrdiff_t lb = b->lb_marked ? b->marked_lb : b->bounded ? b->lb : 0;
	/* of marks alone: the bound that there is none of is 0 */
	ptrdiff_t ub = b->ub_marked ? b->marked_ub : b->bounded ? b->ub : 0;
	if (b->bounded && !b->ub_marked && b->align > 1) {
		const ptrdiff_t over = (ub - lb) % b->align;
		ub += over > 0 ? b->align - over : 0;
	}
	t->align = b->align ? b->align : 1;
	t->lb_marked = b->lb_marked;
	t->ub_marked = b->ub_marked;
	datatype_set_bounds(t, lb, ub);
}

void datatype_builder_add(struct datatype_builder *b, const struct datatype *old,
			  size_t blocklength, ptrdiff_t offset)
{
	if (b->layout.failed || b->elements.failed || blocklength == 0)
		return;
	if (old->size == 0) {
		bound(b, old, blocklength, old->extent, offset);
		return;
	}
	if (b->last_old != old || b->last_length != blocklength) {
		layout_release(b->last);
		b->last_old = old;
		b->last_length = blocklength;
		if (!layout_repeat(old->data, blocklength, old->extent, &b->last)) {
			b->layout.failed = true;
			return;
		}
	}
	bound(b, old, blocklength, old->extent, offset);
	struct layout_ref block = b->last;
	layout_retain(block);
	block.offset += offset;
	layout_append(&b->layout, block);
	struct signature_ref elements;
	if (signature_repeat(old->elements, blocklength, &elements))
		signature_append(&b->elements, elements);
	else
		b->elements.failed = true;
}

struct datatype *datatype_builder_finish(struct datatype_builder *b)
{
	struct layout_ref data;
	struct signature_ref elements;
	layout_release(b->last);
	b->last = layout_run(0, 0);
	if (!layout_finish(&b->layout, &data)) {
		signature_discard(&b->elements);
		return NULL;
	}
	if (!signature_finish(&b->elements, &elements)) {
		layout_release(data);
		return NULL;
	}
	struct datatype *t = datatype_make(data, elements);
	if (t)
		finish_bounds(t, b);
	return t;
}

struct datatype *datatype_make_vector(const struct datatype *old, size_t count, size_t blocklength,
				      ptrdiff_t stride)
{
	struct layout_ref block, data;
	struct signature_ref elements;
	if (!layout_repeat(old->data, blocklength, old->extent, &block))
		return NULL;
	const bool ok = layout_repeat(block, count, stride, &data);
	layout_release(block);
	if (!ok)
		return NULL;
	if (!signature_repeat(old->elements, count * blocklength, &elements)) {
		layout_release(data);
		return NULL;
	}
	struct datatype *t = datatype_make(data, elements);
	if (!t)
		return NULL;
	struct datatype_builder b = {0};
	if (count && blocklength) {
		/* the bounds of a grid: its corners */
		const ptrdiff_t last = (ptrdiff_t)(count - 1) * stride;
		bound(&b, old, blocklength, old->extent, 0);
		bound(&b, old, blocklength, old->extent, last);
	}
	finish_bounds(t, &b);
	return t;
}

static struct datatype *make_same(const struct datatype *old)
{
	layout_retain(old->data);
	signature_retain(old->elements);
	struct datatype *t = datatype_make(old->data, old->elements);
	if (!t)
		return NULL;
	t->align = old->align;
	t->true_lb = old->true_lb;
	t->true_extent = old->true_extent;
	return t;
}

struct datatype *datatype_make_dup(const struct datatype *old)
{
	struct datatype *t = make_same(old);
	if (!t)
		return NULL;
	t->lb_marked = old->lb_marked;
	t->ub_marked = old->ub_marked;
	t->committed = old->committed;
	datatype_set_bounds(t, old->lb, old->lb + old->extent);
	return t;
}

struct datatype *datatype_make_resized(const struct datatype *old, ptrdiff_t lb, ptrdiff_t extent)
{
	struct datatype *t = make_same(old);
	if (!t)
		return NULL;
	t->lb_marked = t->ub_marked = true;
	datatype_set_bounds(t, lb, lb + extent);
	return t;
}
