/* SPDX-License-Identifier: BSD-3-Clause */
/* The datatype engine against type maps written out element by element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "object/layout_wire.h"
#include "object/typemap.h"

enum { ROUNDS = 4000 };

static void check_shape(const struct typemap *m)
{
	const struct datatype *t = m->type;
	const struct bytes b = typemap_bytes(m, 1);
	size_t runs = b.count > 0;
	for (size_t i = 1; i < b.count; i++)
		runs += b.at[i] != b.at[i - 1] + 1;
	assert_int_equal(t->size, b.count);
	assert_int_equal(t->elements.count, typemap_elements(m));
	assert_int_equal(t->elements.size, b.count);
	assert_int_equal(t->lb, m->any ? m->lb : 0);
	assert_int_equal(t->extent, m->any ? typemap_extent(m) : 0);
	assert_int_equal(t->true_lb, b.low);
	assert_int_equal(t->true_extent, b.high - b.low);
	assert_true(t->nblocks >= runs);
	assert_int_equal(t->nblocks == 1, runs == 1);
	assert_int_equal(t->contiguous, b.count == 0 || (runs == 1 && b.low == 0 &&
							 t->extent == (ptrdiff_t)b.count));
	for (size_t i = 1; i < m->count; i++) {
		if (m->entries[i].basic != m->entries[0].basic)
			assert_int_equal(t->elements.basic, BASIC_NONE);
	}
	free(b.at);
}

static void check_pack(const struct typemap *m, size_t count)
{
	const struct bytes b = typemap_bytes(m, count);
	const size_t reach = (size_t)(b.high - b.low);
	unsigned char *memory = noise(reach), *out = malloc(b.count + 1);
	const unsigned char *base = memory - b.low;
	/* in one go, and in pieces that begin anywhere */
	for (int round = 0; round < 4; round++) {
		const size_t skip = round ? pick((unsigned)b.count + 1) : 0;
		const size_t max = round ? pick((unsigned)b.count + 9) : b.count;
		const size_t expected = skip + max > b.count ? b.count - skip : max;
		memset(out, 0xee, b.count + 1);
		assert_int_equal(datatype_pack(m->type, base, count, skip, out, max), expected);
		for (size_t i = 0; i < expected; i++)
			assert_int_equal(out[i], base[b.at[skip + i]]);
		assert_int_equal(out[expected], 0xee);
	}
	struct iovec iov[5];
	size_t done = 0, bytes;
	for (size_t n; (n = datatype_iov(m->type, base, count, done, iov, 1 + pick(5), &bytes));) {
		for (size_t i = 0, k = done; i < n; i++) {
			for (size_t j = 0; j < iov[i].iov_len; j++, k++)
				assert_ptr_equal((unsigned char *)iov[i].iov_base + j,
						 base + b.at[k]);
		}
		done += bytes;
	}
	assert_int_equal(done, b.count);
	free(memory);
	free(out);
	free(b.at);
}

static void check_unpack(const struct typemap *m, size_t count)
{
	const struct bytes b = typemap_bytes(m, count);
	const size_t reach = (size_t)(b.high - b.low);
	unsigned char *in = noise(b.count), *memory = calloc(1, reach + 1);
	unsigned char *expected = calloc(1, reach + 1);
	for (size_t done = 0, step; done < b.count; done += step) {
		step = 1 + pick((unsigned)(b.count - done));
		assert_int_equal(
		    datatype_unpack(m->type, memory - b.low, count, done, in + done, step), step);
		for (size_t i = done; i < done + step; i++)
			expected[b.at[i] - b.low] = in[i];
		assert_memory_equal(memory, expected, reach + 1);
	}
	/* what is beyond the end is ignored */
	assert_int_equal(datatype_unpack(m->type, memory - b.low, count, b.count, in, 1), 0);
	free(in);
	free(memory);
	free(expected);
	free(b.at);
}

/* total bytes hold n elements exactly, and the next element takes `next` bytes. */
static void check_element(const struct typemap *m, size_t total, size_t n, size_t next)
{
	size_t found;
	assert_true(signature_elements(m->type->elements, total, &found));
	assert_int_equal(found, n);
	assert_int_equal(signature_bytes(m->type->elements, n), total);
	for (size_t k = 1; k < next; k++)
		assert_false(signature_elements(m->type->elements, total + k, &found));
}

static void check_elements(const struct typemap *m)
{
	size_t total = 0, n = 0;
	for (size_t i = 0; i < m->count; i++) {
		const struct basic_shape *s = &basic_shapes[m->entries[i].basic];
		if (s->elements == 2) {
			check_element(m, total, n, s->width);
			check_element(m, total + s->width, n + 1, s->size - s->width);
		} else {
			check_element(m, total, n, s->size);
		}
		total += s->size;
		n += s->elements;
	}
	if (total) {
		size_t found;
		assert_true(signature_elements(m->type->elements, 7 * total, &found));
		assert_int_equal(found, 7 * n);
		assert_int_equal(signature_bytes(m->type->elements, 3 * n), 3 * total);
	}
}

static void random_types_pack_as_their_type_maps_say(void **state)
{
	size_t before, after, mapped, tried = 0;
	heap_stats(&before, &mapped);
	for (int i = 0; i < ROUNDS; i++) {
		struct typemap m = typemap_random(1 + (int)pick(4));
		if (typemap_fits(&m)) {
			tried++;
			check_shape(&m);
			check_elements(&m);
			for (size_t count = 0; count < 4; count++) {
				check_pack(&m, count);
				check_unpack(&m, count);
			}
		}
		typemap_free(&m);
	}
	heap_stats(&after, &mapped);
	assert_int_equal(before, after);
	assert_true(tried > ROUNDS / 2);
}

static void copies_between_types_keep_the_packed_bytes(void **state)
{
	for (int i = 0; i < ROUNDS / 4; i++) {
		struct typemap s = typemap_random((int)pick(4)), d = typemap_random((int)pick(4));
		const size_t scount = pick(4), dcount = pick(4);
		if (typemap_fits(&s) && typemap_fits(&d)) {
			const struct bytes sb = typemap_bytes(&s, scount),
					   db = typemap_bytes(&d, dcount);
			const size_t n = sb.count < db.count ? sb.count : db.count;
			unsigned char *from = noise((size_t)(sb.high - sb.low));
			unsigned char *to = calloc(1, (size_t)(db.high - db.low) + 1);
			unsigned char *expected = calloc(1, (size_t)(db.high - db.low) + 1);
			assert_int_equal(datatype_copy(d.type, to - db.low, dcount, s.type,
						       from - sb.low, scount),
					 n);
			for (size_t k = 0; k < n; k++)
				expected[db.at[k] - db.low] = from[sb.at[k] - sb.low];
			assert_memory_equal(to, expected, (size_t)(db.high - db.low) + 1);
			free(from);
			free(to);
			free(expected);
			free(sb.at);
			free(db.at);
		}
		typemap_free(&s);
		typemap_free(&d);
	}
}

static void external32_is_big_endian_and_comes_back(void **state)
{
	for (int i = 0; i < ROUNDS / 8; i++) {
		struct typemap m = typemap_random((int)pick(4));
		const size_t count = pick(3);
		const size_t bytes = m.type->size * count;
		bool long_doubles = false; /* and longs: no mere bytes the other way round */
		for (size_t k = 0; k < m.count; k++)
			long_doubles |= m.entries[k].basic == BASIC_LDOUBLE ||
					m.entries[k].basic == BASIC_LDOUBLE_INT ||
					m.entries[k].basic == BASIC_LONG;
		if (typemap_fits(&m) && !long_doubles) {
			const struct bytes b = typemap_bytes(&m, count);
			const size_t reach = (size_t)(b.high - b.low);
			unsigned char *memory = noise(reach), *again = calloc(1, reach + 1);
			unsigned char *native = malloc(bytes + 1), *out = malloc(bytes + 1);
			datatype_pack(m.type, memory - b.low, count, 0, native, bytes);
			assert_true(datatype_pack_external(m.type, memory - b.low, count, out));
			const unsigned char *p = native, *q = out;
			for (size_t k = 0; k < count * m.count; k++) {
				const struct basic_shape *s =
				    &basic_shapes[m.entries[k % m.count].basic];
				for (int part = 0; part < s->parts + (s->tail > 0); part++) {
					const int w = part < s->parts ? s->width : s->tail;
					for (int x = 0; x < w; x++)
						assert_int_equal(q[x], p[w - 1 - x]);
					p += w;
					q += w;
				}
			}
			assert_true(datatype_unpack_external(m.type, again - b.low, count, out));
			for (size_t k = 0; k < b.count; k++)
				assert_int_equal(again[b.at[k] - b.low], memory[b.at[k] - b.low]);
			free(memory);
			free(again);
			free(native);
			free(out);
			free(b.at);
		}
		typemap_free(&m);
	}
}

static void external32_writes_long_double_as_binary128(void **state)
{
	const long double x[2] = {1.0L, -2.5L};
	static const unsigned char expected[32] = {0x3f, 0xff, [16] = 0xc0, 0x00, 0x40};
	unsigned char out[32];
	long double back[2];
	assert_true(datatype_pack_external(handle(MPI_LONG_DOUBLE), x, 2, out));
	assert_memory_equal(out, expected, 32);
	assert_true(datatype_unpack_external(handle(MPI_LONG_DOUBLE), back, 2, out));
	assert_true(back[0] == 1.0L && back[1] == -2.5L);
}

static void external32_narrows_long_and_wchar(void **state)
{
	const long x[2] = {258, -2};
	static const unsigned char expected[8] = {0, 0, 1, 2, 0xff, 0xff, 0xff, 0xfe};
	unsigned char out[8];
	long back[2];
	assert_int_equal(signature_wire(handle(MPI_LONG)->elements), 4);
	assert_true(datatype_pack_external(handle(MPI_LONG), x, 2, out));
	assert_memory_equal(out, expected, 8);
	assert_true(datatype_unpack_external(handle(MPI_LONG), back, 2, out));
	assert_true(back[0] == 258 && back[1] == -2);
	const wchar_t w = 0x20ac;
	wchar_t again;
	assert_true(datatype_pack_external(handle(MPI_WCHAR), &w, 1, out));
	assert_true(out[0] == 0x20 && out[1] == 0xac);
	assert_true(datatype_unpack_external(handle(MPI_WCHAR), &again, 1, out));
	assert_int_equal(again, w);
	struct {
		long value;
		int place;
	} pair = {-5, 7}, pair_again = {0, 0};
	assert_int_equal(signature_wire(handle(MPI_LONG_INT)->elements), 8);
	assert_true(datatype_pack_external(handle(MPI_LONG_INT), &pair, 1, out));
	assert_true(datatype_unpack_external(handle(MPI_LONG_INT), &pair_again, 1, out));
	assert_true(pair_again.value == -5 && pair_again.place == 7);
}

static void huge_regular_types_are_small_and_exact(void **state)
{
	size_t before, after, mapped;
	heap_stats(&before, &mapped);
	/* 2^40 doubles, every other one */
	struct datatype *inner = datatype_make_vector(handle(MPI_DOUBLE), 1 << 20, 1, 16);
	struct datatype *outer = datatype_make_vector(inner, 1, 1 << 20, 0);
	struct datatype *deep = datatype_make_vector(outer, 2, 1, (ptrdiff_t)1 << 50);
	assert_int_equal(outer->size, 1ul << 43);
	assert_int_equal(deep->size, 1ul << 44);
	assert_int_equal(deep->nblocks, 1ul << 41);
	heap_stats(&after, &mapped);
	assert_true(after - before < 4096);
	struct iovec iov[2];
	size_t bytes;
	char *base = (char *)0x10000;
	assert_int_equal(datatype_iov(deep, base, 1, (1ul << 43) + 8, iov, 2, &bytes), 2);
	assert_ptr_equal(iov[0].iov_base, base + ((ptrdiff_t)1 << 50) + 16);
	assert_int_equal(bytes, 16);
	size_t n;
	assert_true(signature_elements(deep->elements, deep->size, &n));
	assert_int_equal(n, 1ul << 41);
	datatype_release(deep);
	datatype_release(outer);
	datatype_release(inner);
	heap_stats(&after, &mapped);
	assert_int_equal(before, after);
}

static void types_larger_than_the_address_space_are_refused(void **state)
{
	size_t before, after, mapped;
	heap_stats(&before, &mapped);
	struct datatype *t = datatype_make_vector(handle(MPI_INT), 1, 1ul << 31, 0);
	struct datatype *u = datatype_make_vector(t, 1, 1ul << 29, 0);
	assert_int_equal(u->size, 1ul << 62);
	assert_null(datatype_make_vector(u, 1, 2, 0));
	assert_null(datatype_make_vector(t, 1ul << 31, 1, (ptrdiff_t)1 << 40));
	struct datatype_builder b = {0};
	datatype_builder_add(&b, u, 4, 0);
	assert_null(datatype_builder_finish(&b));
	datatype_release(t);
	datatype_release(u);
	heap_stats(&after, &mapped);
	assert_int_equal(before, after);
}

static void equal_blocks_at_equal_distances_become_a_loop(void **state)
{
	struct datatype_builder b = {0};
	for (int i = 0; i < 1000; i++)
		datatype_builder_add(&b, handle(MPI_INT), 2, i * 24);
	struct datatype *t = datatype_builder_finish(&b);
	assert_int_equal(t->data.node->kind, LAYOUT_LOOP);
	assert_int_equal(t->data.node->count, 1000);
	datatype_release(t);
}

static void types_grown_step_by_step_stay_shallow(void **state)
{
	/* each one the one before and a distant byte */
	struct datatype *t = datatype_make_dup(handle(MPI_CHAR));
	for (int i = 1; i < 2000; i++) {
		struct datatype_builder b = {0};
		datatype_builder_add(&b, t, 1, 0);
		datatype_builder_add(&b, handle(MPI_CHAR), 1, (ptrdiff_t)i * i);
		struct datatype *next = datatype_builder_finish(&b);
		datatype_release(t);
		t = next;
	}
	assert_int_equal(t->size, 2000);
	assert_true(t->data.node->depth < 40);
	char *memory = calloc(1, 2000 * 2000), out[2000];
	for (int i = 0; i < 2000; i++)
		memory[(ptrdiff_t)i * i] = (char)(i & 0x7f);
	assert_int_equal(datatype_pack(t, memory, 1, 0, out, sizeof(out)), 2000);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(out[i], i & 0x7f);
	free(memory);
	datatype_release(t);
}

static void more_than_two_gigabytes_are_packed_right(void **state)
{
	/* all elements lie on the same eight bytes, so that no memory is needed */
	struct datatype *t = datatype_make_resized(handle(MPI_DOUBLE), 0, 0);
	const size_t count = 600u << 20;
	double one = 1.5, out[4];
	assert_int_equal(datatype_pack(t, &one, count, count * 8 - 20, out, sizeof(out)), 20);
	assert_memory_equal((char *)out + 4, &one, 8);
	struct iovec iov[1];
	size_t bytes;
	assert_int_equal(datatype_iov(t, &one, count, count * 8 - 8, iov, 1, &bytes), 1);
	assert_ptr_equal(iov[0].iov_base, &one);
	datatype_release(t);
	size_t n;
	datatype_run(handle(MPI_DOUBLE), NULL, count, &n);
	assert_int_equal(n, count * 8);
}

static void predefined_types_have_the_sizes_of_c(void **state)
{
	static const struct {
		MPI_Datatype type;
		size_t size, extent, align;
	} expected[] = {
#define C_TYPE(h, t) {h, sizeof(t), sizeof(t), _Alignof(t)}
#define C_PAIR(h, t)                                                                               \
	{                                                                                          \
		h, sizeof(t) + sizeof(int), sizeof(struct {                                        \
			t value;                                                                   \
			int place;                                                                 \
		}),                                                                                \
		    _Alignof(struct {                                                              \
			    t value;                                                               \
			    int place;                                                             \
		    })                                                                             \
	}
	    C_TYPE(MPI_CHAR, char),
	    C_TYPE(MPI_SHORT, short),
	    C_TYPE(MPI_INT, int),
	    C_TYPE(MPI_LONG, long),
	    C_TYPE(MPI_FLOAT, float),
	    C_TYPE(MPI_DOUBLE, double),
	    C_TYPE(MPI_LONG_DOUBLE, long double),
	    C_TYPE(MPI_C_BOOL, _Bool),
	    C_TYPE(MPI_WCHAR, wchar_t),
	    C_TYPE(MPI_AINT, MPI_Aint),
	    C_TYPE(MPI_COUNT, MPI_Count),
	    C_TYPE(MPI_C_LONG_DOUBLE_COMPLEX, long double _Complex),
	    C_TYPE(MPI_REAL16, __float128),
	    C_PAIR(MPI_SHORT_INT, short),
	    C_PAIR(MPI_2INT, int),
	    C_PAIR(MPI_LONG_INT, long),
	    C_PAIR(MPI_FLOAT_INT, float),
	    C_PAIR(MPI_DOUBLE_INT, double),
	    C_PAIR(MPI_LONG_DOUBLE_INT, long double),
	};
	for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
		const struct datatype *t = handle(expected[i].type);
		assert_int_equal(t->size, expected[i].size);
		assert_int_equal(t->extent, expected[i].extent);
		assert_int_equal(t->align, expected[i].align);
		assert_int_equal(t->size, width(t->elements.basic));
	}
}

/* As another process builds it from the numbers. */
static void check_wire(const struct typemap *m, size_t count)
{
	struct layout_ref whole, copy;
	const struct bytes b = typemap_bytes(m, count);
	assert_true(layout_repeat(m->type->data, count, m->type->extent, &whole));
	size_t n = layout_wire_count(whole);
	int64_t *numbers = malloc(n * sizeof(*numbers));
	assert_ptr_equal(layout_wire_write(whole, numbers), numbers + n);
	assert_true(layout_wire_read(numbers, n, &copy));
	assert_int_equal(copy.size, b.count);
	struct iovec iov[7];
	size_t done = 0, bytes;
	for (size_t k; (k = layout_pieces(copy, NULL, done, iov, 7, &bytes)); done += bytes)
		for (size_t i = 0, at = done; i < k; i++)
			for (size_t j = 0; j < iov[i].iov_len; j++, at++)
				assert_int_equal((ptrdiff_t)iov[i].iov_base + (ptrdiff_t)j,
						 b.at[at]);
	assert_int_equal(done, b.count);
	layout_release(copy);
	/* cut short, or with something behind it, it is none */
	assert_false(layout_wire_read(numbers, n - 1, &copy));
	numbers[1]++;
	assert_false(layout_wire_read(numbers, n, &copy) && copy.size == b.count);
	layout_release(whole);
	free(numbers);
	free(b.at);
}

static void random_layouts_come_back_from_their_numbers(void **state)
{
	for (int i = 0; i < ROUNDS / 4; i++) {
		struct typemap m = typemap_random(1 + (int)pick(4));
		if (typemap_fits(&m) && m.type->size)
			check_wire(&m, 1 + pick(3));
		typemap_free(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(predefined_types_have_the_sizes_of_c),
	    cmocka_unit_test(random_types_pack_as_their_type_maps_say),
	    cmocka_unit_test(copies_between_types_keep_the_packed_bytes),
	    cmocka_unit_test(external32_is_big_endian_and_comes_back),
	    cmocka_unit_test(external32_writes_long_double_as_binary128),
	    cmocka_unit_test(external32_narrows_long_and_wchar),
	    cmocka_unit_test(huge_regular_types_are_small_and_exact),
	    cmocka_unit_test(types_larger_than_the_address_space_are_refused),
	    cmocka_unit_test(equal_blocks_at_equal_distances_become_a_loop),
	    cmocka_unit_test(types_grown_step_by_step_stay_shallow),
	    cmocka_unit_test(more_than_two_gigabytes_are_packed_right),
	    cmocka_unit_test(random_layouts_come_back_from_their_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
