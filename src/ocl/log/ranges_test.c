/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "ocl/log/ranges.h"

enum { SPACE = 64 };

static const void *address(size_t at)
{
	return (const void *)(uintptr_t)(4096 + at);
}

/* Beside a set that is an array, for many sets of ranges. */
static void ranges_hold_what_was_added(void **state)
{
	uint64_t draw = 7;
	struct ranges r = {0};

	for (int round = 0; round < 2000; round++) {
		bool in[SPACE] = {0};

		for (int n = 0; n < 10; n++) {
			size_t from, size;

			draw = draw * 6364136223846793005u + 1442695040888963407u;
			from = (draw >> 33) % SPACE;
			size = (draw >> 50) % 7;
			if (size > SPACE - from)
				size = SPACE - from;
			ranges_add(&r, address(from), size);
			memset(in + from, 1, size);
			for (size_t at = 0; at < SPACE; at++)
				assert_int_equal(ranges_meet(&r, address(at), 1), in[at]);
			assert_int_equal(ranges_meet(&r, address(from), SPACE - from),
					 memchr(in + from, 1, SPACE - from) != NULL);
			for (uint32_t i = 1; i < r.count; i++)
				assert_true(r.at[i - 1].to < r.at[i].from);
		}
		ranges_clear(&r);
		assert_false(ranges_meet(&r, address(0), SPACE));
	}
	ranges_fini(&r);
}

static void nothing_meets_nothing(void **state)
{
	struct ranges r = {0};

	ranges_add(&r, address(3), 0);
	assert_int_equal(r.count, 0);
	assert_false(ranges_meet(&r, address(0), 10));
	ranges_add(&r, address(3), 2);
	assert_false(ranges_meet(&r, address(4), 0));
	assert_false(ranges_meet(&r, address(5), 1));
	assert_false(ranges_meet(&r, address(0), 3));
	assert_true(ranges_meet(&r, address(4), 1));
	ranges_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ranges_hold_what_was_added),
	    cmocka_unit_test(nothing_meets_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
