/* SPDX-License-Identifier: BSD-3-Clause */
#include "object/typemap.h"

#include <stdlib.h>

enum { ENTRIES_MAX = 4000, REACH_MAX = 1 << 20 };

static uint64_t seed = 20240501;

unsigned pick(unsigned n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)((seed >> 20) % n);
}

/* Mostly 1 to n - 1, now and then 0. */
static unsigned some(unsigned n)
{
	return pick(12) ? 1 + pick(n - 1) : 0;
}

struct datatype *handle(MPI_Datatype h)
{
	return (struct datatype *)h;
}

size_t width(basic_t b)
{
	return basic_shapes[b].size;
}

size_t typemap_elements(const struct typemap *m)
{
	size_t n = 0;
	for (size_t i = 0; i < m->count; i++)
		n += basic_shapes[m->entries[i].basic].elements;
	return n;
}

void typemap_free(struct typemap *m)
{
	free(m->entries);
	datatype_release(m->type);
}

/* One copy of part at offset. */
static void typemap_add(struct typemap *m, const struct typemap *part, ptrdiff_t offset)
{
	m->entries = realloc(m->entries, (m->count + part->count + 1) * sizeof(*m->entries));
	for (size_t i = 0; i < part->count; i++) {
		m->entries[m->count] = part->entries[i];
		m->entries[m->count++].offset += offset;
	}
	if (!part->any)
		return;
	const ptrdiff_t lb = part->lb + offset, ub = part->ub + offset;
	/* an explicit bound beats all natural ones */
	if (part->lb_marked > m->lb_marked || !m->any ||
	    (part->lb_marked == m->lb_marked && lb < m->lb))
		m->lb = lb;
	if (part->ub_marked > m->ub_marked || !m->any ||
	    (part->ub_marked == m->ub_marked && ub > m->ub))
		m->ub = ub;
	m->lb_marked |= part->lb_marked;
	m->ub_marked |= part->ub_marked;
	m->any = true;
	if (part->align > m->align)
		m->align = part->align;
}

static void typemap_round(struct typemap *m)
{
	if (m->any && !m->ub_marked && m->align > 1) {
		while ((m->ub - m->lb) % m->align != 0)
			m->ub++;
	}
}

ptrdiff_t typemap_extent(const struct typemap *m)
{
	return m->ub - m->lb;
}

static struct typemap typemap_basic(void)
{
	static const MPI_Datatype all[] = {
	    MPI_CHAR,
	    MPI_SHORT,
	    MPI_INT,
	    MPI_DOUBLE,
	    MPI_FLOAT,
	    MPI_LONG_DOUBLE,
	    MPI_C_DOUBLE_COMPLEX,
	    MPI_BYTE,
	    MPI_LONG,
	    MPI_SHORT_INT,
	    MPI_DOUBLE_INT,
	    MPI_2INT,
	    MPI_C_BOOL,
	    MPI_LONG_DOUBLE_INT,
	};
	struct typemap m = {.type = handle(all[pick(ARRAY_LEN(all))]), .count = 1, .any = true};
	m.entries = malloc(sizeof(*m.entries));
	m.entries[0] = (struct entry){0, (basic_t)m.type->elements.basic};
	m.ub = m.type->extent;
	m.align = m.type->align;
	return m;
}

static struct typemap typemap_vector(const struct typemap *old)
{
	const size_t n = some(5), length = some(4);
	const ptrdiff_t stride =
	    pick(3) ? (ptrdiff_t)pick(7) * typemap_extent(old) : (ptrdiff_t)pick(90) - 40;
	struct typemap m = {.type = datatype_make_vector(old->type, n, length, stride)};
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < length; k++)
			typemap_add(&m, old,
				    (ptrdiff_t)i * stride + (ptrdiff_t)k * typemap_extent(old));
	}
	typemap_round(&m);
	return m;
}

static struct typemap typemap_blocks(const struct typemap *olds, size_t nolds, bool regular)
{
	struct typemap m = {0};
	struct datatype_builder b = {0};
	const size_t n = some(7);
	ptrdiff_t offset = (ptrdiff_t)pick(40) - 20;
	for (size_t i = 0; i < n; i++) {
		const struct typemap *old = &olds[pick((unsigned)nolds)];
		const size_t length = regular ? 2 : some(4);
		datatype_builder_add(&b, old->type, length, offset);
		for (size_t k = 0; k < length; k++)
			typemap_add(&m, old, offset + (ptrdiff_t)k * typemap_extent(old));
		/* often touching the one before */
		offset += pick(2) ? (ptrdiff_t)length * typemap_extent(old)
				  : (regular ? 64 : (ptrdiff_t)pick(60) - 10);
	}
	m.type = datatype_builder_finish(&b);
	typemap_round(&m);
	return m;
}

static struct typemap typemap_resized(const struct typemap *old)
{
	const ptrdiff_t lb = (ptrdiff_t)pick(32) - 16, extent = (ptrdiff_t)pick(80) - 8;
	struct typemap m = {.type = datatype_make_resized(old->type, lb, extent)};
	typemap_add(&m, old, 0);
	m.any = m.lb_marked = m.ub_marked = true;
	m.lb = lb;
	m.ub = lb + extent;
	return m;
}

static void typemap_array_bounds(struct typemap *m, ptrdiff_t extent)
{
	m->any = m->lb_marked = m->ub_marked = true;
	m->lb = 0;
	m->ub = extent;
}

/* Calls add for each index of the array in storage order that `mine` says yes to. */
static void typemap_array(struct typemap *m, const struct typemap *old, int ndims,
			  const MPI_Count *sizes, int order,
			  bool (*mine)(const int *index, const void *arg), const void *arg)
{
	long total = 1;
	for (int d = 0; d < ndims; d++)
		total *= sizes[d];
	for (long k = 0; k < total; k++) {
		int index[4];
		long rest = k;
		for (int i = 0; i < ndims; i++) {
			const int d = order == MPI_ORDER_C ? ndims - 1 - i : i;
			index[d] = (int)(rest % sizes[d]);
			rest /= sizes[d];
		}
		if (mine(index, arg))
			typemap_add(m, old, k * typemap_extent(old));
	}
	typemap_array_bounds(m, total * typemap_extent(old));
}

struct slice_test {
	int ndims;
	MPI_Count sizes[4], subsizes[4], starts[4];
	int distribs[4], dargs[4], psizes[4], coords[4];
};

static bool in_subarray(const int *index, const void *arg)
{
	const struct slice_test *s = arg;
	for (int d = 0; d < s->ndims; d++) {
		if (index[d] < s->starts[d] || index[d] >= s->starts[d] + s->subsizes[d])
			return false;
	}
	return true;
}

static struct typemap typemap_subarray(const struct typemap *old)
{
	struct slice_test s = {.ndims = 1 + (int)pick(3)};
	const int order = pick(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
	for (int d = 0; d < s.ndims; d++) {
		s.sizes[d] = 1 + pick(5);
		s.subsizes[d] = 1 + pick((unsigned)s.sizes[d]);
		s.starts[d] = pick((unsigned)(s.sizes[d] - s.subsizes[d] + 1));
	}
	struct typemap m = {.type = datatype_make_subarray(old->type, s.ndims, s.sizes, s.subsizes,
							   s.starts, order)};
	typemap_array(&m, old, s.ndims, s.sizes, order, in_subarray, &s);
	return m;
}

static bool in_darray(const int *index, const void *arg)
{
	const struct slice_test *s = arg;
	for (int d = 0; d < s->ndims; d++) {
		int block = s->dargs[d];
		if (s->distribs[d] == MPI_DISTRIBUTE_NONE)
			continue;
		if (block == MPI_DISTRIBUTE_DFLT_DARG)
			block = s->distribs[d] == MPI_DISTRIBUTE_CYCLIC
				    ? 1
				    : (int)((s->sizes[d] + s->psizes[d] - 1) / s->psizes[d]);
		if (index[d] / block % s->psizes[d] != s->coords[d])
			return false;
	}
	return true;
}

static struct typemap typemap_darray(const struct typemap *old)
{
	static const int kinds[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK,
				    MPI_DISTRIBUTE_CYCLIC};
	struct slice_test s = {.ndims = 1 + (int)pick(3)};
	const int order = pick(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
	int nprocs = 1, rank = 0;
	for (int d = 0; d < s.ndims; d++) {
		s.sizes[d] = 1 + pick(7);
		s.distribs[d] = kinds[pick(3)];
		s.psizes[d] = s.distribs[d] == MPI_DISTRIBUTE_NONE ? 1 : 1 + (int)pick(3);
		s.coords[d] = (int)pick((unsigned)s.psizes[d]);
		s.dargs[d] = MPI_DISTRIBUTE_DFLT_DARG;
		if (pick(2))
			s.dargs[d] = s.distribs[d] == MPI_DISTRIBUTE_CYCLIC
					 ? 1 + (int)pick(4)
					 : (int)((s.sizes[d] + s.psizes[d] - 1) / s.psizes[d]) +
					       (int)pick(2);
		nprocs *= s.psizes[d];
		rank = rank * s.psizes[d] + s.coords[d];
	}
	struct typemap m = {.type = datatype_make_darray(old->type, nprocs, rank, s.ndims, s.sizes,
							 s.distribs, s.dargs, s.psizes, order)};
	typemap_array(&m, old, s.ndims, s.sizes, order, in_darray, &s);
	return m;
}

static struct typemap typemap_dup(const struct typemap *old)
{
	struct typemap m = {.type = datatype_make_dup(old->type)};
	typemap_add(&m, old, 0);
	return m;
}

struct typemap typemap_random(int depth)
{
	if (depth == 0)
		return typemap_basic();
	struct typemap olds[2] = {typemap_random(depth - 1),
				  typemap_random((int)pick((unsigned)depth))};
	struct typemap m;
	switch (pick(8)) {
	case 0:
	case 1:
		m = typemap_vector(&olds[0]);
		break;
	case 2:
		m = typemap_blocks(olds, 2, false);
		break;
	case 3:
		m = typemap_blocks(olds, 1, true);
		break;
	case 4:
		m = typemap_resized(&olds[0]);
		break;
	case 5:
		m = typemap_subarray(&olds[0]);
		break;
	case 6:
		m = typemap_darray(&olds[0]);
		break;
	default:
		m = typemap_dup(&olds[0]);
	}
	typemap_free(&olds[0]);
	typemap_free(&olds[1]);
	return m;
}

static void bytes_add(struct bytes *b, ptrdiff_t at, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const ptrdiff_t x = at + (ptrdiff_t)i;
		b->low = b->count == 0 || x < b->low ? x : b->low;
		b->high = b->count == 0 || x + 1 > b->high ? x + 1 : b->high;
		b->at[b->count++] = x;
	}
}

struct bytes typemap_bytes(const struct typemap *m, size_t count)
{
	struct bytes b = {0};
	b.at = malloc((m->count * count * 32 + 1) * sizeof(*b.at));
	for (size_t c = 0; c < count; c++) {
		for (size_t i = 0; i < m->count; i++) {
			const struct entry *e = &m->entries[i];
			const ptrdiff_t at = e->offset + (ptrdiff_t)c * typemap_extent(m);
			if (e->basic == BASIC_SHORT_INT) {
				bytes_add(&b, at, 2);
				bytes_add(&b, at + 4, 4);
			} else {
				bytes_add(&b, at, width(e->basic));
			}
		}
	}
	return b;
}

unsigned char *noise(size_t n)
{
	unsigned char *p = malloc(n + 1);
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)pick(256);
	return p;
}

bool typemap_fits(const struct typemap *m)
{
	return m->count <= ENTRIES_MAX && labs(typemap_extent(m)) < REACH_MAX &&
	       m->type->true_extent < REACH_MAX;
}
