/* SPDX-License-Identifier: BSD-3-Clause */
#include "object/layout.h"

#include <string.h>
#include "base/base.h"

enum {
	SPLICE_PARTS = 64, /* a list this short is copied into the list that it is part of */
	SPLICE_DEPTH = 24, /* and any list from this depth on, to bound recursion */
};

void layout_retain(struct layout_ref r)
{
	if (r.node && r.node->refs != LAYOUT_REFS_STATIC)
		r.node->refs++;
}

void layout_release(struct layout_ref r)
{
	struct layout *l = r.node;
	if (!l || l->refs == LAYOUT_REFS_STATIC || --l->refs > 0)
		return;
	layout_release((struct layout_ref){.node = l->child});
	for (size_t i = 0; l->parts && i < l->count; i++)
		layout_release((struct layout_ref){.node = l->parts[i].node});
	heap_free(l->parts);
	heap_free(l);
}

size_t layout_runs(struct layout_ref r)
{
	return r.node ? r.node->runs : r.size > 0;
}

void layout_range(struct layout_ref r, ptrdiff_t *low, ptrdiff_t *high)
{
	*low = r.offset + (r.node ? r.node->low : 0);
	*high = r.offset + (r.node ? r.node->high : (ptrdiff_t)r.size);
}

/* More bytes, or a longer way from the first to the last, than an address can say? */
static bool too_large(struct layout_ref r, size_t count, ptrdiff_t stride)
{
	ptrdiff_t way, bytes;
	return count > PTRDIFF_MAX || __builtin_mul_overflow((ptrdiff_t)count, stride, &way) ||
	       __builtin_mul_overflow((ptrdiff_t)r.size, (ptrdiff_t)count, &bytes);
}

bool layout_repeat(struct layout_ref r, size_t count, ptrdiff_t stride, struct layout_ref *out)
{
	*out = layout_run(0, 0);
	if (count == 0 || r.size == 0)
		return true;
	if (too_large(r, count, stride))
		return false;
	if (count == 1) {
		layout_retain(r);
		*out = r;
		return true;
	}
	if (!r.node && stride == (ptrdiff_t)r.size) {
		*out = layout_run(r.offset, r.size * count);
		return true;
	}
	struct layout *l = heap_calloc(1, sizeof(*l));
	if (!l)
		return false;
	*l = (struct layout){.refs = 1, .kind = LAYOUT_LOOP, .size = r.size * count};
	const struct layout *c = r.node;
	if (c && c->kind == LAYOUT_LOOP && stride == c->stride * (ptrdiff_t)c->count) {
		l->count = count * c->count;
		l->stride = c->stride;
		l->child = c->child;
		l->child_size = c->child_size;
	} else {
		l->count = count;
		l->stride = stride;
		l->child = r.node;
		l->child_size = r.size;
	}
	const struct layout_ref child = {.size = l->child_size, .node = l->child};
	const ptrdiff_t last = (ptrdiff_t)(l->count - 1) * l->stride;
	layout_retain(child);
	layout_range(child, &l->low, &l->high);
	l->low += last < 0 ? last : 0;
	l->high += last > 0 ? last : 0;
	l->runs = l->count * layout_runs(child);
	l->depth = 1 + (l->child ? l->child->depth : 0);
	*out = (struct layout_ref){.offset = r.offset, .size = l->size, .node = l};
	return true;
}

/* Room for one part more, and for the one that ends the list. */
static bool grow(struct layout_builder *b)
{
	if (b->parts && b->count + 2 <= b->capacity)
		return true;
	const size_t capacity = b->capacity ? 2 * b->capacity : 8;
	struct layout_part *p = heap_realloc(b->parts, capacity * sizeof(*p));
	if (!p) {
		b->failed = true;
		return false;
	}
	b->parts = p;
	b->capacity = capacity;
	return true;
}

static void push(struct layout_builder *b, struct layout_ref r)
{
	struct layout_part *last = b->count ? &b->parts[b->count - 1] : NULL;
	if (last && !last->node && !r.node &&
	    last->offset + (ptrdiff_t)(b->size - last->start) == r.offset) {
		b->size += r.size;
		return;
	}
	if (!grow(b)) {
		layout_release(r);
		return;
	}
	b->parts[b->count++] =
	    (struct layout_part){.offset = r.offset, .start = b->size, .node = r.node};
	b->size += r.size;
}

void layout_append(struct layout_builder *b, struct layout_ref r)
{
	const struct layout *l = r.node;
	if (b->failed || r.size == 0) {
		layout_release(r);
		return;
	}
	if (!l || l->kind != LAYOUT_LIST || (l->count > SPLICE_PARTS && l->depth < SPLICE_DEPTH)) {
		push(b, r);
		return;
	}
	for (size_t i = 0; i < l->count; i++) {
		const struct layout_ref part = {
		    .offset = r.offset + l->parts[i].offset,
		    .size = l->parts[i + 1].start - l->parts[i].start,
		    .node = l->parts[i].node,
		};
		layout_retain(part);
		push(b, part);
	}
	layout_release(r);
}

void layout_discard(struct layout_builder *b)
{
	for (size_t i = 0; i < b->count; i++)
		layout_release((struct layout_ref){.node = b->parts[i].node});
	heap_free(b->parts);
	*b = (struct layout_builder){0};
}

static size_t part_size(const struct layout_builder *b, size_t i)
{
	return (i + 1 < b->count ? b->parts[i + 1].start : b->size) - b->parts[i].start;
}

/* The same thing again and again at equal distances? Then it is a loop. */
static bool is_regular(const struct layout_builder *b)
{
	const struct layout_part *p = b->parts;
	const ptrdiff_t stride = p[1].offset - p[0].offset;
	const size_t size = part_size(b, 0);
	for (size_t i = 1; i < b->count; i++) {
		if (p[i].offset - p[i - 1].offset != stride || p[i].node != p[0].node ||
		    part_size(b, i) != size)
			return false;
	}
	return true;
}

static bool finish_loop(struct layout_builder *b, struct layout_ref *out)
{
	const struct layout_ref child = {
	    .offset = b->parts[0].offset, .size = part_size(b, 0), .node = b->parts[0].node};
	const ptrdiff_t stride = b->parts[1].offset - b->parts[0].offset;
	const bool ok = layout_repeat(child, b->count, stride, out);
	layout_discard(b);
	return ok;
}

bool layout_finish(struct layout_builder *b, struct layout_ref *out)
{
	*out = layout_run(0, 0);
	if (b->failed) {
		layout_discard(b);
		return false;
	}
	if (b->count <= 1) {
		if (b->count)
			*out = (struct layout_ref){.offset = b->parts[0].offset,
						   .size = b->size,
						   .node = b->parts[0].node};
		heap_free(b->parts);
		*b = (struct layout_builder){0};
		return true;
	}
	if (is_regular(b))
		return finish_loop(b, out);
	struct layout *l = heap_calloc(1, sizeof(*l));
	if (!l) {
		layout_discard(b);
		return false;
	}
	*l = (struct layout){.refs = 1,
			     .kind = LAYOUT_LIST,
			     .depth = 1,
			     .size = b->size,
			     .count = b->count,
			     .parts = b->parts};
	l->parts[l->count] = (struct layout_part){.start = l->size};
	for (size_t i = 0; i < l->count; i++) {
		const struct layout_ref part = {.offset = l->parts[i].offset,
						.size = part_size(b, i),
						.node = l->parts[i].node};
		ptrdiff_t low, high;
		layout_range(part, &low, &high);
		l->low = i == 0 || low < l->low ? low : l->low;
		l->high = i == 0 || high > l->high ? high : l->high;
		l->runs += layout_runs(part);
		if (part.node && part.node->depth >= l->depth)
			l->depth = part.node->depth + 1;
	}
	*b = (struct layout_builder){0};
	*out = (struct layout_ref){.size = l->size, .node = l};
	return true;
}
