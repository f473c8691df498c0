// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include "head/output/echo.h"

static char heard[4096];
static size_t heard_len;

static void pass(void *arg, const char *text, size_t len)
{
	assert_true(heard_len + len < sizeof(heard));
	memcpy(heard + heard_len, text, len);
	heard_len += len;
	heard[heard_len] = '\0';
}

static struct echoes two(uint32_t degree)
{
	struct echoes e;

	heard_len = 0;
	heard[0] = '\0';
	assert_true(echo_init(&e, degree, pass, NULL));
	return e;
}

static void say(struct echoes *e, uint32_t slot, const char *text)
{
	assert_true(echo_take(e, slot, text, strlen(text)));
}

static void what_both_print_is_read_once(void **state)
{
	struct echoes e = two(2);

	say(&e, 1, "one ");
	assert_string_equal(heard, "");
	say(&e, 0, "one two ");
	say(&e, 1, "two ");
	assert_string_equal(heard, "one two ");
	echo_fini(&e);
}

static void the_survivor_goes_on_where_the_dead_one_stopped(void **state)
{
	struct echoes e = two(2);

	say(&e, 1, "one two three ");
	say(&e, 0, "one tw");
	echo_lost(&e, 0);
	assert_string_equal(heard, "one two three ");
	say(&e, 1, "four");
	assert_string_equal(heard, "one two three four");
	echo_fini(&e);
}

static void a_survivor_that_is_behind_repeats_nothing(void **state)
{
	struct echoes e = two(2);

	say(&e, 0, "one two ");
	say(&e, 1, "on");
	echo_lost(&e, 0);
	say(&e, 1, "e tw");
	assert_string_equal(heard, "one two ");
	say(&e, 1, "o three");
	assert_string_equal(heard, "one two three");
	echo_fini(&e);
}

static void nothing_comes_behind_a_good_end(void **state)
{
	struct echoes e = two(2);

	say(&e, 0, "99.5 %");
	echo_ended(&e, 0);
	say(&e, 1, "100.0 %");
	assert_string_equal(heard, "99.5 %");
	echo_fini(&e);
}

/* Replicas print the same, in pieces of any size; two of three die at any time. */
static void any_pieces_and_deaths_give_the_same_text(void **state)
{
	char text[1000];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 23);
	for (unsigned seed = 1; seed <= 300; seed++) {
		struct echoes e = two(3);
		size_t at[3] = {0};
		bool dead[3] = {false};
		int deaths = 0;

		srand(seed);
		while (at[0] < sizeof(text) || at[1] < sizeof(text) || at[2] < sizeof(text)) {
			uint32_t s = (uint32_t)rand() % 3;
			size_t n = (size_t)rand() % 40, left = sizeof(text) - at[s];

			if (dead[s])
				continue;
			assert_true(echo_take(&e, s, text + at[s], n < left ? n : left));
			at[s] += n < left ? n : left;
			if (deaths < 2 && rand() % 20 == 0) {
				deaths++;
				dead[s] = true;
				at[s] = sizeof(text);
				echo_lost(&e, s);
			}
		}
		assert_int_equal(heard_len, sizeof(text));
		assert_memory_equal(heard, text, sizeof(text));
		echo_fini(&e);
	}
}

static void a_copy_speaks_when_all_before_it_is_said(void **state)
{
	struct echoes e = two(2);

	say(&e, 0, "abc");
	echo_lost(&e, 0);
	say(&e, 1, "abcd");
	/* of the six bytes that slot 1 had printed when it was copied two are on their way */
	echo_returned(&e, 0, 6);
	say(&e, 0, "gh");
	assert_string_equal(heard, "abcd");
	say(&e, 1, "ef");
	assert_string_equal(heard, "abcdefgh");
	say(&e, 1, "ghi");
	say(&e, 0, "i");
	assert_string_equal(heard, "abcdefghi");
	say(&e, 1, "jk");
	echo_lost(&e, 0);
	assert_string_equal(heard, "abcdefghijk");
	echo_fini(&e);
}

static void a_copy_speaks_alone_when_its_source_is_dead(void **state)
{
	struct echoes e = two(2);

	say(&e, 0, "abc");
	echo_lost(&e, 1);
	echo_returned(&e, 1, 3);
	say(&e, 1, "de");
	assert_string_equal(heard, "abc");
	echo_lost(&e, 0);
	assert_string_equal(heard, "abcde");
	echo_fini(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_both_print_is_read_once),
	    cmocka_unit_test(the_survivor_goes_on_where_the_dead_one_stopped),
	    cmocka_unit_test(a_survivor_that_is_behind_repeats_nothing),
	    cmocka_unit_test(nothing_comes_behind_a_good_end),
	    cmocka_unit_test(a_copy_speaks_when_all_before_it_is_said),
	    cmocka_unit_test(a_copy_speaks_alone_when_its_source_is_dead),
	    cmocka_unit_test(any_pieces_and_deaths_give_the_same_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
