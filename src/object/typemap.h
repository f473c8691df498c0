/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests: random datatypes, each made beside its type map, written out element by element as the
 * standard's book says. */
#ifndef HALE_OBJECT_TYPEMAP_H
#define HALE_OBJECT_TYPEMAP_H

#include "object/datatype.h"

struct entry {
	ptrdiff_t offset;
	basic_t basic;
};

/* The type map by the book, beside the real type. */
struct typemap {
	struct datatype *type;
	size_t count;
	struct entry *entries;
	bool any, lb_marked, ub_marked; /* any: it has natural bounds */
	ptrdiff_t lb, ub;
	ptrdiff_t align;
};

/* Bytes in the order of the type map, one offset each. */
struct bytes {
	ptrdiff_t *at;
	size_t count;
	ptrdiff_t low, high;
};

/* 0 to n - 1, always the same sequence. */
unsigned pick(unsigned n);
/* n bytes and one more, for the caller to free. */
unsigned char *noise(size_t n);

struct datatype *handle(MPI_Datatype h);
size_t width(basic_t b);

/* A type of so many constructors on top of each other, at least; goes with typemap_free. */
struct typemap typemap_random(int depth);
void typemap_free(struct typemap *m);
size_t typemap_elements(const struct typemap *m); /* basic ones */
ptrdiff_t typemap_extent(const struct typemap *m);
/* Small enough to be tried out. */
bool typemap_fits(const struct typemap *m);
/* Of count such; `at` is for the caller to free. */
struct bytes typemap_bytes(const struct typemap *m, size_t count);

#endif
