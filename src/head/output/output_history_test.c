/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "head/output/output_history.h"

enum { LONG = 300000 };

/* Byte n of what the rank prints. */
static unsigned char byte_at(uint64_t n)
{
	return (unsigned char)((n * 2654435761u) >> 13);
}

/* Prints [from, to) in pieces of so many bytes; returns how many were swallowed. */
static size_t print(struct history *h, uint64_t from, uint64_t to, size_t piece)
{
	unsigned char buf[10000];
	size_t swallowed = 0;

	while (from < to) {
		size_t n = to - from < piece ? (size_t)(to - from) : piece;
		for (size_t i = 0; i < n; i++)
			buf[i] = byte_at(from + i);
		swallowed += history_take(h, buf, n);
		from += n;
	}
	return swallowed;
}

static void new_bytes_are_never_swallowed(void **state)
{
	struct history h;

	history_init(&h, 0);
	assert_int_equal(print(&h, 0, LONG, 777), 0);
	assert_int_equal(h.printed, LONG);
	assert_false(h.differs);
	history_fini(&h);
}

static void bytes_printed_again_are_swallowed_from_any_position(void **state)
{
	static const uint64_t positions[] = {
	    0, 1, 4095, 4096, 4097, 100000, LONG - 65536, LONG - 65537, LONG - 1, LONG};
	struct history h;

	history_init(&h, 0);
	print(&h, 0, LONG, 4096);
	for (size_t i = 0; i < sizeof(positions) / sizeof(*positions); i++) {
		uint64_t before = h.printed;

		history_rewind(&h, positions[i]);
		assert_int_equal(print(&h, positions[i], before + 5, 1 + 613 * i),
				 before - positions[i]);
		assert_int_equal(h.printed, before + 5);
		assert_false(h.differs);
	}
	history_fini(&h);
}

static void one_other_byte_is_noticed_near_and_far(void **state)
{
	/* where the job went back to, and the byte that differs */
	static const uint64_t cases[][2] = {
	    {LONG - 10, LONG - 3}, {0, 5000}, {0, 0}, {100, LONG - 70000}, {4096, 4096}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct history h;
		unsigned char other;

		history_init(&h, 0);
		print(&h, 0, LONG, 1000);
		history_rewind(&h, cases[i][0]);
		print(&h, cases[i][0], cases[i][1], 1000);
		other = (unsigned char)(byte_at(cases[i][1]) ^ 1);
		assert_int_equal(history_take(&h, &other, 1), 1);
		assert_int_equal(print(&h, cases[i][1] + 1, LONG, 1000), LONG - cases[i][1] - 1);
		assert_true(h.differs);
		history_fini(&h);
	}
}

static void a_second_rollback_during_the_first_one_is_fine(void **state)
{
	struct history h;

	history_init(&h, 0);
	print(&h, 0, LONG, 1000);
	history_rewind(&h, 50000);
	print(&h, 50000, 123456, 1000);
	history_rewind(&h, 50000);
	assert_int_equal(print(&h, 50000, LONG, 999), LONG - 50000);
	assert_false(h.differs);
	history_fini(&h);
}

static void a_restarted_job_begins_at_its_position(void **state)
{
	struct history h;

	history_init(&h, 0);
	history_rewind(&h, 100001);
	assert_int_equal(print(&h, 100001, LONG, 999), 0);
	history_rewind(&h, 150000);
	assert_int_equal(print(&h, 150000, LONG, 999), LONG - 150000);
	assert_false(h.differs);
	history_fini(&h);
}

static void what_is_forgotten_is_not_needed(void **state)
{
	struct history h;

	history_init(&h, 0);
	print(&h, 0, LONG, 1000);
	history_forget(&h, 200000);
	assert_true(h.hash_count <= (LONG - 200000) / HISTORY_CHUNK + 1);
	print(&h, LONG, 2 * LONG, 1000);
	history_rewind(&h, 200000);
	assert_int_equal(print(&h, 200000, 2 * LONG, 1000), 2 * LONG - 200000);
	assert_false(h.differs);
	history_forget(&h, 10 * (uint64_t)LONG);
	assert_int_equal(h.hash_count, 0);
	history_fini(&h);
}

/* A rank that prints for ever, and no checkpoint that says what may be forgotten. */
static void memory_is_bounded_and_the_newest_is_still_compared(void **state)
{
	const uint64_t more = (3 * (uint64_t)HISTORY_HASHES / 2 + 5) * HISTORY_CHUNK;
	static unsigned char same[64 * HISTORY_CHUNK];
	struct history h;

	history_init(&h, 0);
	for (uint64_t at = 0; at < more; at += sizeof(same))
		history_take(&h, same, sizeof(same));
	assert_true(h.hash_count <= HISTORY_HASHES && h.hash_cap <= HISTORY_HASHES);
	history_rewind(&h, 0);
	assert_int_equal(history_take(&h, same, sizeof(same)), sizeof(same));
	assert_false(h.differs);
	history_rewind(&h, h.printed - h.printed / 4);
	same[HISTORY_CHUNK] = 1;
	assert_int_equal(history_take(&h, same, sizeof(same)), sizeof(same));
	assert_true(h.differs);
	history_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(new_bytes_are_never_swallowed),
	    cmocka_unit_test(bytes_printed_again_are_swallowed_from_any_position),
	    cmocka_unit_test(one_other_byte_is_noticed_near_and_far),
	    cmocka_unit_test(a_second_rollback_during_the_first_one_is_fine),
	    cmocka_unit_test(a_restarted_job_begins_at_its_position),
	    cmocka_unit_test(what_is_forgotten_is_not_needed),
	    cmocka_unit_test(memory_is_bounded_and_the_newest_is_still_compared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
