/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/base.h"

static void seconds_are_read_in_every_unit(void **state)
{
	static const struct {
		const char *text;
		double seconds;
	} good[] = {
	    {"5s", 5},	   {"500ms", 0.5},    {"2min", 120}, {"1h", 3600}, {"12", 12},
	    {"1.5s", 1.5}, {"250us", 250e-6}, {"1d", 86400}, {"0", 0},	   {".5 s", 0.5},
	};
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		double v = -1;
		assert_true(units_parse_seconds(good[i].text, &v));
		assert_true(v > good[i].seconds - 1e-9 && v < good[i].seconds + 1e-9);
	}
}

static void garbage_is_not_a_duration(void **state)
{
	static const char *const bad[] = {"",	   "s",	   "-1s", "+1",	  "1x",
					  "1 s s", "nan",  "inf", "0x10", "1e3s",
					  "5S",	   "1..2", ".",	  " 5s",  "99999999999999s"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		double v = 7;
		assert_false(units_parse_seconds(bad[i], &v));
		assert_true(v > 6.9 && v < 7.1);
	}
}

static void bytes_are_read_in_every_unit(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
	    {"64MiB", 64ull << 20}, {"4GB", 4000000000ull}, {"12", 12},
	    {"1K", 1024},	    {"1kB", 1000},	    {"1.5KiB", 1536},
	    {"2TiB", 2ull << 40},   {"3 MB", 3000000},	    {"18446744073709551615", UINT64_MAX},
	};
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		uint64_t v = 0;
		assert_true(units_parse_bytes(good[i].text, &v));
		assert_true(v == good[i].bytes);
	}
}

static void garbage_and_overflow_are_not_bytes(void **state)
{
	static const char *const bad[] = {
	    "", "-1", "MiB", "1Zi", "18446744073709551616", "99999999TiB", "1 2"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		uint64_t v;
		assert_false(units_parse_bytes(bad[i], &v));
	}
}

static void integers_fill_the_text_and_stay_in_range(void **state)
{
	long v = 0;
	assert_true(units_parse_int("42", 1, 100, &v));
	assert_int_equal(v, 42);
	assert_true(units_parse_int("-3", -10, 10, &v));
	assert_int_equal(v, -3);
	assert_false(units_parse_int("0", 1, 100, &v));
	assert_false(units_parse_int("101", 1, 100, &v));
	assert_false(units_parse_int("4x", 1, 100, &v));
	assert_false(units_parse_int("", 1, 100, &v));
	assert_false(units_parse_int(" 4", 1, 100, &v));
	assert_false(units_parse_int("99999999999999999999", LONG_MIN, LONG_MAX, &v));
}

static void quantities_are_shown_for_people(void **state)
{
	char b[16];
	assert_string_equal(units_show_bytes(0, b), "0 B");
	assert_string_equal(units_show_bytes(1288490189, b), "1.2 GiB");
	assert_string_equal(units_show_bytes(500ull << 20, b), "500 MiB");
	assert_string_equal(units_show_bytes(UINT64_MAX, b), "16.0 EiB");
	assert_string_equal(units_show_seconds(0.34, b), "340 ms");
	assert_string_equal(units_show_seconds(0.0123, b), "12.3 ms");
	assert_string_equal(units_show_seconds(25e-6, b), "25 us");
	assert_string_equal(units_show_seconds(5, b), "5.0 s");
	assert_string_equal(units_show_seconds(600, b), "10.0 min");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(seconds_are_read_in_every_unit),
	    cmocka_unit_test(garbage_is_not_a_duration),
	    cmocka_unit_test(bytes_are_read_in_every_unit),
	    cmocka_unit_test(garbage_and_overflow_are_not_bytes),
	    cmocka_unit_test(integers_fill_the_text_and_stay_in_range),
	    cmocka_unit_test(quantities_are_shown_for_people),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
