/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/closest.h"

static size_t distance(const char *a, const char *b)
{
	return closest_distance(a, strlen(a), b, strlen(b));
}

static void each_kind_of_slip_counts_one(void **state)
{
	assert_int_equal(distance("spares", "spares"), 0);
	assert_int_equal(distance("spare", "spares"), 1);
	assert_int_equal(distance("spaares", "spares"), 1);
	assert_int_equal(distance("spores", "spares"), 1);
	assert_int_equal(distance("sapres", "spares"), 1);
	assert_int_equal(distance("", "abc"), 3);
	assert_int_equal(distance("kitten", "sitting"), 3);
}

static void both_ways_are_equally_long(void **state)
{
	static const char *const words[] = {"a", "ab", "ba", "abc", "acb", "xyz", "--ckpt-every", ""};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		for (size_t j = 0; j < sizeof(words) / sizeof(*words); j++)
			assert_int_equal(distance(words[i], words[j]), distance(words[j], words[i]));
}

static void the_closest_word_wins_and_a_far_one_does_not(void **state)
{
	static const char *const known[] = {"--ckpt-every", "--ckpt-dir", "--keep", "--spares"};
	struct closest c;

	closest_init(&c, "--chkpt-every", strlen("--chkpt-every"));
	for (size_t i = 0; i < 4; i++)
		closest_try(&c, known[i], strlen(known[i]));
	assert_string_equal(c.word, "--ckpt-every");
	closest_init(&c, "--frobnicate", strlen("--frobnicate"));
	for (size_t i = 0; i < 4; i++)
		closest_try(&c, known[i], strlen(known[i]));
	assert_string_equal(c.word, "");
}

static void words_that_are_too_long_are_far_from_all(void **state)
{
	char text[400];
	struct closest c;

	memset(text, 'x', sizeof(text));
	closest_init(&c, text, sizeof(text));
	closest_try(&c, text, sizeof(text));
	assert_string_equal(c.word, "");
	assert_int_equal(closest_distance(text, 64, "x", 1), SIZE_MAX);
	assert_int_equal(closest_distance(text, 63, "x", 1), 62);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_kind_of_slip_counts_one),
	    cmocka_unit_test(both_ways_are_equally_long),
	    cmocka_unit_test(the_closest_word_wins_and_a_far_one_does_not),
	    cmocka_unit_test(words_that_are_too_long_are_far_from_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
