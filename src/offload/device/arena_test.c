/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "offload/device/arena.h"

static struct local_store s;

static int begin(void **state)
{
	s = (struct local_store){.size = 1 << 20};
	return store_map(&s) ? 0 : -1;
}

static int end(void **state)
{
	return munmap((void *)ARENA_AT, s.size);
}

static void buffers_do_not_overlap_and_gaps_are_used_again(void **state)
{
	struct {
		uint64_t at, size;
	} mine[60] = {0};

	srandom(7);
	for (int step = 0; step < 20000; step++) {
		unsigned i = (unsigned)random() % 60;

		if (mine[i].at) {
			char *b = (char *)mine[i].at;

			assert_int_equal(b[0], (char)i);
			assert_int_equal(b[mine[i].size - 1], (char)i);
			assert_true(store_free(&s, mine[i].at));
			mine[i].at = 0;
			continue;
		}
		mine[i].size = 1 + (uint64_t)random() % 30000;
		mine[i].at = store_alloc(&s, mine[i].size);
		if (!mine[i].at) {
			assert_int_equal(errno, ENOSPC);
			continue;
		}
		for (uint64_t k = 0; k < mine[i].size; k += 997)
			assert_int_equal(((char *)mine[i].at)[k], 0);
		assert_true(store_has(&s, mine[i].at, mine[i].size));
		assert_false(store_has(&s, mine[i].at, mine[i].size + 1));
		memset((char *)mine[i].at, (int)i, mine[i].size);
	}
	for (unsigned i = 0; i < 60; i++)
		if (mine[i].at)
			assert_true(store_free(&s, mine[i].at));
	assert_int_equal(s.count, 0);
}

static void what_is_full_or_strange_is_refused(void **state)
{
	uint64_t all = store_alloc(&s, s.size);

	assert_int_equal(all, ARENA_AT);
	assert_int_equal(store_alloc(&s, 1), 0);
	assert_int_equal(errno, ENOSPC);
	assert_false(store_has(&s, all + 1, s.size));
	assert_false(store_has(&s, all - 1, 1));
	assert_false(store_has(&s, all, UINT64_MAX));
	assert_false(store_free(&s, all + 4096));
	assert_true(store_free(&s, all));
	assert_false(store_free(&s, all));
	assert_int_equal(store_alloc(&s, 0), 0);
	assert_int_equal(store_alloc(&s, UINT64_MAX), 0);
	for (int i = 0; i < 256; i++)
		assert_true(store_alloc(&s, 1) != 0);
	assert_int_equal(store_alloc(&s, 1), 0); /* a page each */
	while (s.count)
		assert_true(store_free(&s, s.range[0].address));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(buffers_do_not_overlap_and_gaps_are_used_again),
	    cmocka_unit_test(what_is_full_or_strange_is_refused),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
