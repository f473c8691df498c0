/* SPDX-License-Identifier: BSD-3-Clause */
/* external32: every scalar big-endian, in the size that it has here (like Open MPI, which also
 * keeps MPI_LONG at eight bytes); C's long double travels as IEEE binary128. */
#include "object/datatype.h"

#include <string.h>

struct conversion {
	char *p; /* the packed bytes, converted in place */
	bool reading;
};

static void swap(char *p, size_t width, size_t count)
{
	for (size_t i = 0; i < count; i++, p += width) {
		uint64_t a, b;
		switch (width) {
		case 2:
			memcpy(&a, p, 2);
			a = __builtin_bswap16((uint16_t)a);
			memcpy(p, &a, 2);
			break;
		case 4:
			memcpy(&a, p, 4);
			a = __builtin_bswap32((uint32_t)a);
			memcpy(p, &a, 4);
			break;
		case 8:
			memcpy(&a, p, 8);
			a = __builtin_bswap64(a);
			memcpy(p, &a, 8);
			break;
		case 16:
			memcpy(&a, p, 8);
			memcpy(&b, p + 8, 8);
			a = __builtin_bswap64(a);
			b = __builtin_bswap64(b);
			memcpy(p, &b, 8);
			memcpy(p + 8, &a, 8);
			break;
		}
	}
}

static void widen(char *p, size_t count, bool reading)
{
	for (size_t i = 0; i < count; i++, p += 16) {
		__float128 wide;
		long double native;
		if (reading) {
			memcpy(&wide, p, sizeof(wide));
			native = (long double)wide;
			memset(p, 0, 16); /* no stray bytes in the padding of the 80-bit number */
			memcpy(p, &native, 10);
		} else {
			memcpy(&native, p, sizeof(native));
			wide = native;
			memcpy(p, &wide, sizeof(wide));
		}
	}
}

static void convert_scalars(struct conversion *c, bool long_double, size_t width, size_t count)
{
	if (long_double && !c->reading)
		widen(c->p, count, false);
	swap(c->p, width, count);
	if (long_double && c->reading)
		widen(c->p, count, true);
	c->p += width * count;
}

static void convert(void *arg, basic_t basic, size_t count)
{
	struct conversion *c = arg;
	const struct basic_shape *shape = &basic_shapes[basic];
	const bool long_double =
	    basic == BASIC_LDOUBLE || basic == BASIC_CLDOUBLE || basic == BASIC_LDOUBLE_INT;
	if (!shape->tail) {
		convert_scalars(c, long_double, shape->width, count * shape->parts);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		convert_scalars(c, long_double, shape->width, shape->parts);
		convert_scalars(c, false, shape->tail, 1);
	}
}

static bool convert_all(const struct datatype *t, size_t count, char *packed, bool reading)
{
	struct signature_ref all;
	if (!signature_repeat(t->elements, count, &all))
		return false;
	struct conversion c = {.p = packed, .reading = reading};
	signature_walk(all, convert, &c);
	signature_release(all);
	return true;
}

bool datatype_pack_external(const struct datatype *t, const void *buf, size_t count, void *out)
{
	datatype_pack(t, buf, count, 0, out, count * t->size);
	return convert_all(t, count, out, false);
}

bool datatype_unpack_external(const struct datatype *t, void *buf, size_t count, const void *in)
{
	const size_t bytes = count * t->size;
	if (bytes == 0)
		return true;
	char *packed = heap_alloc(bytes);
	if (!packed)
		return false;
	memcpy(packed, in, bytes);
	const bool ok = convert_all(t, count, packed, true);
	if (ok)
		datatype_unpack(t, buf, count, 0, packed, bytes);
	heap_free(packed);
	return ok;
}
