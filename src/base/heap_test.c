/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/base.h"

static size_t in_use(void)
{
	size_t n;
	heap_stats(&n, NULL);
	return n;
}

static void every_size_is_aligned_and_writable(void **state)
{
	static const size_t more[] = {40000, 65536, 262144 - 128, 262144, 262145, 1 << 20, 5000001};
	for (size_t size = 0; size <= 33000; size++) {
		char *p = heap_alloc(size);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % (size >= 64 ? 64 : 16), 0);
		memset(p, 0x5a, size);
		heap_free(p);
	}
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		char *p = heap_alloc(more[i]);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 64, 0);
		memset(p, 0x5a, more[i]);
		heap_free(p);
	}
	assert_int_equal(in_use(), 0);
}

static void objects_of_one_size_never_overlap(void **state)
{
	enum { COUNT = 20000 };
	static uint64_t *p[COUNT];
	for (uint64_t i = 0; i < COUNT; i++) {
		p[i] = heap_alloc(48);
		for (int k = 0; k < 6; k++)
			p[i][k] = i;
	}
	for (uint64_t i = 0; i < COUNT; i++)
		for (int k = 0; k < 6; k++)
			assert_int_equal(p[i][k], i);
	for (int i = 0; i < COUNT; i++)
		heap_free(p[i]);
	assert_int_equal(in_use(), 0);
}

struct held {
	unsigned char *p;
	size_t size;
	unsigned char mark;
};

static void check_mark(const struct held *h)
{
	for (size_t i = 0; i < h->size; i++)
		assert_int_equal(h->p[i], h->mark);
}

static size_t random_size(unsigned *seed)
{
	unsigned kind = (unsigned)rand_r(seed) % 100;
	if (kind < 70)
		return (size_t)rand_r(seed) % 600;
	return (size_t)rand_r(seed) % (kind < 95 ? 33000 : 400000);
}

static void random_use_keeps_contents_and_leaks_nothing(void **state)
{
	enum { SLOTS = 300, STEPS = 60000 };
	static struct held slot[SLOTS];
	unsigned seed = 7;
	for (int step = 0; step < STEPS; step++) {
		struct held *h = &slot[rand_r(&seed) % SLOTS];
		if (h->p && step % 3) {
			check_mark(h);
			heap_free(h->p);
			h->p = NULL;
			continue;
		}
		size_t size = random_size(&seed);
		size_t kept = h->p ? (size < h->size ? size : h->size) : 0;
		h->p = heap_realloc(h->p, size);
		assert_non_null(h->p);
		for (size_t i = 0; i < kept; i++)
			assert_int_equal(h->p[i], h->mark);
		h->size = size;
		h->mark = (unsigned char)step;
		memset(h->p, h->mark, size);
	}
	for (int i = 0; i < SLOTS; i++) {
		heap_free(slot[i].p);
		slot[i].p = NULL;
	}
	assert_int_equal(in_use(), 0);
}

static void freed_chunks_serve_other_sizes(void **state)
{
	enum { COUNT = 3000 };
	static void *p[COUNT];
	size_t mapped_first = 0, mapped;
	for (size_t round = 0; round < 20; round++) {
		for (int i = 0; i < COUNT; i++)
			p[i] = heap_alloc(200 + round * 64);
		for (int i = 0; i < COUNT; i++)
			heap_free(p[i]);
		heap_stats(NULL, &mapped);
		if (round == 19)
			assert_true(mapped < mapped_first * 4 + (16ul << 20));
		if (round == 0)
			mapped_first = mapped;
	}
	assert_int_equal(in_use(), 0);
}

static void calloc_zeroes_reused_memory_and_refuses_overflow(void **state)
{
	char *p = heap_alloc(512);
	memset(p, 1, 512);
	heap_free(p);
	p = heap_calloc(8, 64);
	for (int i = 0; i < 512; i++)
		assert_int_equal(p[i], 0);
	heap_free(p);
	p = heap_calloc(1 << 10, 1 << 10);
	for (int i = 0; i < 1 << 20; i += 777)
		assert_int_equal(p[i], 0);
	heap_free(p);
	assert_null(heap_calloc(SIZE_MAX / 2, 3));
}

static void impossible_sizes_give_null(void **state)
{
	assert_null(heap_alloc(SIZE_MAX));
	assert_null(heap_alloc(SIZE_MAX / 2));
	assert_null(heap_alloc(1ul << 50));
	char *p = heap_alloc(100000);
	memset(p, 3, 100000);
	assert_null(heap_realloc(p, 1ul << 50));
	assert_int_equal(p[99999], 3);
	heap_free(p);
	assert_int_equal(in_use(), 0);
}

static void free_of_null_is_fine(void **state)
{
	heap_free(NULL);
	void *p = heap_realloc(NULL, 10);
	assert_non_null(p);
	heap_free(p);
}

static void large_mappings_go_back_to_the_system(void **state)
{
	size_t before, during, after;
	heap_stats(NULL, &before);
	void *p = heap_alloc(10 << 20);
	heap_stats(NULL, &during);
	heap_free(p);
	heap_stats(NULL, &after);
	assert_true(during >= before + (10 << 20));
	assert_int_equal(after, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_size_is_aligned_and_writable),
	    cmocka_unit_test(objects_of_one_size_never_overlap),
	    cmocka_unit_test(random_use_keeps_contents_and_leaks_nothing),
	    cmocka_unit_test(freed_chunks_serve_other_sizes),
	    cmocka_unit_test(calloc_zeroes_reused_memory_and_refuses_overflow),
	    cmocka_unit_test(impossible_sizes_give_null),
	    cmocka_unit_test(free_of_null_is_fine),
	    cmocka_unit_test(large_mappings_go_back_to_the_system),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
