/* SPDX-License-Identifier: BSD-3-Clause */
/* external32: every scalar big-endian and of the size that MPI-3.1 table 13.2 gives it. That is the
 * size it has here, but for long (4 bytes) and wchar_t (2); C's long double travels as IEEE
 * binary128. */
#include "object/datatype.h"

#include <string.h>

struct conversion {
	char *native, *wire; /* how far it has come, in packed elements and in external32 */
	bool reading;
};

/* The big-endian number of `width` bytes at p, or what a scalar of that width is here. */
static __uint128_t load(const char *p, size_t width, bool big_endian)
{
	__uint128_t x = 0;
	for (size_t i = 0; i < width; i++)
		x = x << 8 | (unsigned char)p[big_endian ? i : width - 1 - i];
	return x;
}

static void store(char *p, size_t width, bool big_endian, __uint128_t x)
{
	for (size_t i = 0; i < width; i++, x >>= 8)
		p[big_endian ? width - 1 - i : i] = (char)x;
}

static __uint128_t widen(__uint128_t native)
{
	long double narrow;
	__float128 wide;
	memcpy(&narrow, &native, sizeof(narrow));
	wide = narrow;
	memcpy(&native, &wide, sizeof(native));
	return native;
}

static __uint128_t narrow(__uint128_t wide_bits)
{
	__float128 wide;
	memcpy(&wide, &wide_bits, sizeof(wide));
	const long double x = (long double)wide;
	__uint128_t bits = 0; /* no stray bytes behind the 80-bit number */
	memcpy(&bits, &x, 10);
	return bits;
}

enum scalar_kind { PLAIN, SIGNED, LONG_DOUBLE };

static void convert_scalar(struct conversion *c, enum scalar_kind kind, size_t width, size_t wire)
{
	__uint128_t x;
	if (c->reading) {
		x = load(c->wire, wire, true);
		if (kind == LONG_DOUBLE)
			x = narrow(x);
		else if (kind == SIGNED && x >> (8 * wire - 1))
			x |= ~(__uint128_t)0 << (8 * wire);
		store(c->native, width, false, x);
	} else {
		x = load(c->native, width, false);
		store(c->wire, wire, true, kind == LONG_DOUBLE ? widen(x) : x);
	}
	c->native += width;
	c->wire += wire;
}

static enum scalar_kind kind_of(basic_t basic)
{
	switch (basic) {
	case BASIC_LDOUBLE:
	case BASIC_CLDOUBLE:
	case BASIC_LDOUBLE_INT:
		return LONG_DOUBLE;
	case BASIC_LONG:
	case BASIC_LONG_INT:
		return SIGNED;
	default:
		return PLAIN;
	}
}

static void convert_bytes(struct conversion *c, size_t n)
{
	if (c->reading)
		memcpy(c->native, c->wire, n);
	else
		memcpy(c->wire, c->native, n);
	c->native += n;
	c->wire += n;
}

static void convert(void *arg, basic_t basic, size_t count)
{
	struct conversion *c = arg;
	const struct basic_shape *shape = &basic_shapes[basic];
	const enum scalar_kind kind = kind_of(basic);
	if (shape->size == 1) {
		convert_bytes(c, count);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		for (int part = 0; part < shape->parts; part++)
			convert_scalar(c, kind, shape->width, shape->wire);
		if (shape->tail)
			convert_scalar(c, PLAIN, shape->tail, shape->tail);
	}
}

/* The scalars of all elements between their packed form and external32. */
static bool convert_all(const struct datatype *t, size_t count, struct conversion c)
{
	struct signature_ref all;
	if (!signature_repeat(t->elements, count, &all))
		return false;
	signature_walk(all, convert, &c);
	signature_release(all);
	return true;
}

bool datatype_pack_external(const struct datatype *t, const void *buf, size_t count, void *wire)
{
	const size_t bytes = count * t->size;
	if (bytes == 0)
		return true;
	char *packed = heap_alloc(bytes);
	if (!packed)
		return false;
	datatype_pack(t, buf, count, 0, packed, bytes);
	const bool ok = convert_all(t, count, (struct conversion){packed, wire, false});
	heap_free(packed);
	return ok;
}

bool datatype_unpack_external(const struct datatype *t, void *buf, size_t count, const void *wire)
{
	const size_t bytes = count * t->size;
	if (bytes == 0)
		return true;
	char *packed = heap_alloc(bytes);
	if (!packed)
		return false;
	const bool ok =
	    convert_all(t, count, (struct conversion){packed, (char *)(uintptr_t)wire, true});
	if (ok)
		datatype_unpack(t, buf, count, 0, packed, bytes);
	heap_free(packed);
	return ok;
}
