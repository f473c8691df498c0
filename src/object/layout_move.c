/* SPDX-License-Identifier: BSD-3-Clause */
/* Moving data between memory as a layout describes it and its packed form.
 *
 * Packing and unpacking are the same walk with the copy turned round, so each step is written once
 * with the direction as a constant argument, and instantiated twice by inlining.
 */
#include "object/layout.h"

#include <string.h>
#include "base/base.h"

#define INLINE	  static inline __attribute__((always_inline))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* Memory may be MPI_BOTTOM, that is NULL, to which C does not let one add. */
INLINE char *place(const void *memory, ptrdiff_t offset)
{
	return (char *)((uintptr_t)memory + (uintptr_t)offset);
}

/* n bytes; a constant n becomes a load and a store. */
INLINE void move(char *memory, char *packed, size_t n, bool pack)
{
	if (pack)
		memcpy(packed, memory, n);
	else
		memcpy(memory, packed, n);
}

/* A run as lists of small fields have it: two overlapping moves save the call into memcpy. */
INLINE void move_run(char *memory, char *packed, size_t n, bool pack)
{
	if (n > 32) {
		move(memory, packed, n, pack);
	} else if (n >= 16) {
		move(memory, packed, 16, pack);
		move(memory + n - 16, packed + n - 16, 16, pack);
	} else if (n >= 8) {
		move(memory, packed, 8, pack);
		move(memory + n - 8, packed + n - 8, 8, pack);
	} else if (n >= 4) {
		move(memory, packed, 4, pack);
		move(memory + n - 4, packed + n - 4, 4, pack);
	} else if (n >= 2) {
		move(memory, packed, 2, pack);
		move(memory + n - 2, packed + n - 2, 2, pack);
	} else if (n) {
		move(memory, packed, 1, pack);
	}
}

/* n equal runs at equal distances in memory and in the packed form: what vectors, array slices and
 * arrays of structs come down to. */
INLINE void move_runs_of(char *memory, char *packed, size_t n, ptrdiff_t stride, size_t step,
			 size_t size, bool pack)
{
	for (size_t i = 0; i < n; i++) {
		move(memory, packed, size, pack);
		memory += stride;
		packed += step;
	}
}

INLINE void move_runs(char *memory, char *packed, size_t n, ptrdiff_t stride, size_t step,
		      size_t size, bool pack)
{
	switch (size) {
	case 1:
		move_runs_of(memory, packed, n, stride, step, 1, pack);
		return;
	case 2:
		move_runs_of(memory, packed, n, stride, step, 2, pack);
		return;
	case 3:
		move_runs_of(memory, packed, n, stride, step, 3, pack);
		return;
	case 4:
		move_runs_of(memory, packed, n, stride, step, 4, pack);
		return;
	case 8:
		move_runs_of(memory, packed, n, stride, step, 8, pack);
		return;
	case 12:
		move_runs_of(memory, packed, n, stride, step, 12, pack);
		return;
	case 16:
		move_runs_of(memory, packed, n, stride, step, 16, pack);
		return;
	case 24:
		move_runs_of(memory, packed, n, stride, step, 24, pack);
		return;
	case 32:
		move_runs_of(memory, packed, n, stride, step, 32, pack);
		return;
	case 64:
		move_runs_of(memory, packed, n, stride, step, 64, pack);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		move_run(memory, packed, size, pack);
		memory += stride;
		packed += step;
	}
}

/* n copies of a list of runs, field by field: the size is looked at once a field, not once a run.
 * In batches that stay in the first-level cache. */
INLINE void move_fields(const struct layout *l, char *memory, char *packed, size_t n,
			ptrdiff_t stride, bool pack)
{
	enum { BATCH_BYTES = 8192 };
	const size_t batch = BATCH_BYTES / l->size + 1;
	for (size_t done = 0; done < n; done += batch) {
		const size_t rounds = MIN(batch, n - done);
		for (const struct layout_part *p = l->parts, *end = p + l->count; p < end; p++)
			move_runs(place(memory, p->offset), packed + p->start, rounds, stride,
				  l->size, p[1].start - p->start, pack);
		memory += (ptrdiff_t)rounds * stride;
		packed += rounds * l->size;
	}
}

static void pack_whole(const struct layout *l, char *memory, char *packed);
static void unpack_whole(const struct layout *l, char *memory, char *packed);

/* May the rounds of a loop be moved field by field? Elements that overlap in memory have to be
 * unpacked one after the other: the last one wins. */
INLINE bool by_fields(const struct layout *l, size_t rounds, bool pack)
{
	const struct layout *c = l->child;
	const ptrdiff_t apart = l->stride < 0 ? -l->stride : l->stride;
	return rounds > 4 && c->kind == LAYOUT_LIST && c->depth == 1 && c->size <= 256 &&
	       (pack || c->high - c->low <= apart);
}

INLINE void move_rounds(const struct layout *l, char *memory, char *packed, size_t rounds,
			bool pack)
{
	if (!l->child) {
		move_runs(memory, packed, rounds, l->stride, l->child_size, l->child_size, pack);
		return;
	}
	if (by_fields(l, rounds, pack)) {
		move_fields(l->child, memory, packed, rounds, l->stride, pack);
		return;
	}
	for (size_t i = 0; i < rounds; i++) {
		(pack ? pack_whole : unpack_whole)(l->child, memory, packed);
		memory += l->stride;
		packed += l->child_size;
	}
}

INLINE void move_whole(const struct layout *l, char *memory, char *packed, bool pack)
{
	if (l->kind == LAYOUT_LOOP) {
		move_rounds(l, memory, packed, l->count, pack);
		return;
	}
	for (const struct layout_part *p = l->parts, *end = p + l->count; p < end; p++) {
		if (p->node)
			(pack ? pack_whole : unpack_whole)(p->node, place(memory, p->offset),
							   packed + p->start);
		else
			move_run(place(memory, p->offset), packed + p->start, p[1].start - p->start,
				 pack);
	}
}

static void pack_whole(const struct layout *l, char *memory, char *packed)
{
	move_whole(l, memory, packed, true);
}

static void unpack_whole(const struct layout *l, char *memory, char *packed)
{
	move_whole(l, memory, packed, false);
}

/* The part that packed byte `skip` is in. */
static size_t part_at(const struct layout *l, size_t skip)
{
	size_t low = 0, high = l->count - 1;
	while (low < high) {
		const size_t middle = (low + high + 1) / 2;
		if (l->parts[middle].start <= skip)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static void pack_range(const struct layout *l, char *memory, char *packed, size_t skip, size_t n);
static void unpack_range(const struct layout *l, char *memory, char *packed, size_t skip, size_t n);

/* Bytes [skip, skip + n) of a node or (NULL) a run; packed is where the first of them goes. */
INLINE void move_piece(const struct layout *l, char *memory, char *packed, size_t skip, size_t n,
		       bool pack)
{
	if (!l)
		move(memory + skip, packed, n, pack);
	else if (skip == 0 && n == l->size)
		(pack ? pack_whole : unpack_whole)(l, memory, packed);
	else
		(pack ? pack_range : unpack_range)(l, memory, packed, skip, n);
}

INLINE void loop_range(const struct layout *l, char *memory, char *packed, size_t skip, size_t n,
		       bool pack)
{
	const size_t size = l->child_size, within = skip % size;
	memory += (ptrdiff_t)(skip / size) * l->stride;
	if (within || n < size) {
		const size_t first = MIN(size - within, n);
		move_piece(l->child, memory, packed, within, first, pack);
		memory += l->stride;
		packed += first;
		n -= first;
	}
	const size_t rounds = n / size;
	move_rounds(l, memory, packed, rounds, pack);
	n -= rounds * size;
	if (n)
		move_piece(l->child, memory + (ptrdiff_t)rounds * l->stride, packed + rounds * size,
			   0, n, pack);
}

INLINE void list_range(const struct layout *l, char *memory, char *packed, size_t skip, size_t n,
		       bool pack)
{
	for (const struct layout_part *p = &l->parts[part_at(l, skip)]; n > 0; p++) {
		const size_t within = skip - p->start;
		const size_t step = MIN(p[1].start - skip, n);
		move_piece(p->node, place(memory, p->offset), packed, within, step, pack);
		skip += step;
		packed += step;
		n -= step;
	}
}

static void pack_range(const struct layout *l, char *memory, char *packed, size_t skip, size_t n)
{
	if (l->kind == LAYOUT_LOOP)
		loop_range(l, memory, packed, skip, n, true);
	else
		list_range(l, memory, packed, skip, n, true);
}

static void unpack_range(const struct layout *l, char *memory, char *packed, size_t skip, size_t n)
{
	if (l->kind == LAYOUT_LOOP)
		loop_range(l, memory, packed, skip, n, false);
	else
		list_range(l, memory, packed, skip, n, false);
}

size_t layout_pack(struct layout_ref r, const void *memory, size_t skip, void *packed, size_t max)
{
	if (skip >= r.size)
		return 0;
	const size_t n = MIN(r.size - skip, max);
	move_piece(r.node, place(memory, r.offset), packed, skip, n, true);
	return n;
}

size_t layout_unpack(struct layout_ref r, void *memory, size_t skip, const void *packed, size_t max)
{
	if (skip >= r.size)
		return 0;
	const size_t n = MIN(r.size - skip, max);
	move_piece(r.node, place(memory, r.offset), (char *)(uintptr_t)packed, skip, n, false);
	return n;
}

struct pieces {
	struct iovec *iov;
	size_t count, max, bytes;
};

static bool add_piece(struct pieces *p, char *memory, size_t n)
{
	struct iovec *last = p->count ? &p->iov[p->count - 1] : NULL;
	if (last && (char *)last->iov_base + last->iov_len == memory) {
		last->iov_len += n;
	} else {
		if (p->count == p->max)
			return false;
		p->iov[p->count++] = (struct iovec){.iov_base = memory, .iov_len = n};
	}
	p->bytes += n;
	return true;
}

/* From packed byte skip of the node (NULL: a run of size bytes) to its end; false: full. */
static bool add_pieces(struct pieces *p, const struct layout *l, size_t size, char *memory,
		       size_t skip)
{
	if (!l)
		return add_piece(p, memory + skip, size - skip);
	if (l->kind == LAYOUT_LOOP) {
		for (size_t i = skip / l->child_size; i < l->count; i++) {
			const size_t within =
			    skip > i * l->child_size ? skip - i * l->child_size : 0;
			if (!add_pieces(p, l->child, l->child_size,
					memory + (ptrdiff_t)i * l->stride, within))
				return false;
		}
		return true;
	}
	const struct layout_part *end = l->parts + l->count;
	for (const struct layout_part *q = &l->parts[part_at(l, skip)]; q < end; q++) {
		const size_t within = skip > q->start ? skip - q->start : 0;
		if (!add_pieces(p, q->node, q[1].start - q->start, place(memory, q->offset),
				within))
			return false;
	}
	return true;
}

size_t layout_pieces(struct layout_ref r, const void *memory, size_t skip, struct iovec *iov,
		     size_t max, size_t *bytes)
{
	struct pieces p = {.iov = iov, .max = max};
	if (skip < r.size)
		add_pieces(&p, r.node, r.size, place(memory, r.offset), skip);
	*bytes = p.bytes;
	return p.count;
}
