/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/base.h"
#include "base/copy.h"

enum { EDGE = 64, MOST = 3 * COPY_ACROSS_MIN };

/* Every byte arrives, none beside them changes: all places within a cache line, sizes around those
 * where another way of copying begins, sizes that no number of streams divides. */
static void copies_exactly(void **state)
{
	static const size_t sizes[] = {0,
				       1,
				       63,
				       COPY_ACROSS_MIN - 1,
				       COPY_ACROSS_MIN,
				       COPY_ACROSS_MIN + 1,
				       COPY_ACROSS_MIN + 255,
				       2 * COPY_ACROSS_MIN + 321,
				       MOST};
	unsigned char *from = malloc(MOST + 2 * EDGE), *to = malloc(MOST + 2 * EDGE);
	assert_true(from && to);
	for (size_t i = 0; i < MOST + 2 * EDGE; i++)
		from[i] = (unsigned char)(i * 2654435761u >> 13 | 1);
	for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
		for (size_t at = 0; at < EDGE; at++) {
			size_t n = sizes[s], src = at * 29 % EDGE;
			memset(to, 0, MOST + 2 * EDGE);
			copy_across(to + at, from + src, n);
			assert_memory_equal(to + at, from + src, n);
			for (size_t i = 0; i < at; i++)
				assert_int_equal(to[i], 0);
			for (size_t i = at + n; i < at + n + EDGE; i++)
				assert_int_equal(to[i], 0);
		}
	free(from);
	free(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(copies_exactly)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
