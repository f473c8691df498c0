/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/base.h"
#include "base/json.h"

static void commas_and_nesting_are_put_by_themselves(void **state)
{
	struct json_out j;
	json_out_init(&j);
	json_open_object(&j, NULL);
	json_string(&j, "job", "a1");
	json_open_array(&j, "ranks");
	for (int i = 0; i < 2; i++) {
		json_open_object(&j, NULL);
		json_int(&j, "rank", i);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_open_array(&j, "none");
	json_close_array(&j);
	json_bool(&j, "ok", true);
	json_string(&j, "gone", NULL);
	json_close_object(&j);
	assert_string_equal(j.text, "{\"job\":\"a1\",\"ranks\":[{\"rank\":0},{\"rank\":1}],"
				    "\"none\":[],\"ok\":true,\"gone\":null}");
	json_out_fini(&j);
}

static void texts_are_escaped_and_come_back(void **state)
{
	const char *hard = "a\"b\\c\n\t\x01/\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82";
	struct json_out j;
	json_out_init(&j);
	json_string(&j, NULL, hard);
	struct json_value *v = json_parse(j.text, j.len);
	assert_string_equal(json_text(v, "?"), hard);
	json_free(v);
	json_out_fini(&j);
}

static void bytes_that_are_not_utf8_become_the_replacement_character(void **state)
{
	struct json_out j;
	json_out_init(&j);
	json_string(&j, NULL, "a\xff\xc3");
	assert_string_equal(j.text, "\"a\\ufffd\\ufffd\"");
	json_out_fini(&j);
}

static void numbers_come_back_exactly(void **state)
{
	static const double doubles[] = {0, 0.1, 1.0 / 3, 1e300, -2.5e-7, 123456789.125};
	for (size_t i = 0; i < ARRAY_LEN(doubles); i++) {
		struct json_out j;
		json_out_init(&j);
		json_double(&j, NULL, doubles[i]);
		struct json_value *v = json_parse(j.text, j.len);
		assert_true(json_number(v, -1) == doubles[i]);
		json_free(v);
		json_out_fini(&j);
	}
	struct json_out j;
	json_out_init(&j);
	json_open_array(&j, NULL);
	json_int(&j, NULL, INT64_MIN);
	json_int(&j, NULL, INT64_MAX);
	json_uint(&j, NULL, UINT64_MAX);
	json_double(&j, NULL, NAN);
	json_double(&j, NULL, 0.1);
	json_close_array(&j);
	assert_non_null(strstr(j.text, ",0.1]"));
	struct json_value *v = json_parse(j.text, j.len);
	assert_true(json_number_int(json_at(v, 0), 0) == INT64_MIN);
	assert_true(json_number_int(json_at(v, 1), 0) == INT64_MAX);
	assert_true(json_number_int(json_at(v, 2), 77) == 77); /* beyond int64_t */
	assert_true(json_number(json_at(v, 3), 5) == 5);
	assert_true(json_number_int(json_at(v, 4), 77) == 77);
	json_free(v);
	json_out_fini(&j);
}

static void values_are_found_and_have_fallbacks(void **state)
{
	static const char text[] =
	    " { \"a\" : [ 1, -2, \"x\" ] , \"b\":{\"c\":false}, \"d\":1e2 } ";
	struct json_value *v = json_parse(text, strlen(text));
	assert_non_null(v);
	assert_int_equal(json_count(v), 3);
	assert_int_equal(json_count(json_get(v, "a")), 3);
	assert_int_equal(json_number_int(json_at(json_get(v, "a"), 1), 0), -2);
	assert_string_equal(json_text(json_at(json_get(v, "a"), 2), ""), "x");
	assert_null(json_at(json_get(v, "a"), 3));
	assert_false(json_truth(json_get(json_get(v, "b"), "c"), true));
	assert_true(json_truth(json_get(json_get(v, "b"), "none"), true));
	assert_int_equal(json_number_int(json_get(v, "d"), 0), 100);
	assert_null(json_get(json_get(v, "a"), "a"));
	assert_string_equal(json_text(json_get(v, "d"), "fallback"), "fallback");
	json_free(v);
}

static void malformed_texts_are_refused(void **state)
{
	static const char *const bad[] = {
	    "",
	    "{",
	    "}",
	    "[1,]",
	    "{\"a\"}",
	    "{\"a\":}",
	    "{a:1}",
	    "[1 2]",
	    "01",
	    "1.",
	    ".5",
	    "+1",
	    "-",
	    "1e",
	    "\"a",
	    "\"\\x\"",
	    "\"\\u12\"",
	    "\"\\ud800\"",
	    "\"\\ud800\\u0041\"",
	    "\"\\u0000\"",
	    "\"\n\"",
	    "tru",
	    "nul",
	    "1 1",
	    "{\"a\":1,}",
	    "\"\\\"",
	    "\"\xff\"",
	    "[\"\\\"",
	    "1e999",
	    "nan",
	    "{\"a\" 1}",
	    "[[]",
	    "\"\xc0\x80\"",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_null(json_parse(bad[i], strlen(bad[i])));
	assert_null(json_parse("1\0", 2));
	assert_null(json_parse("\"a\0b\"", 5));
}

static void every_prefix_of_a_document_is_refused(void **state)
{
	static const char text[] = "{\"a\":[1,2.5e3,\"\\u00e9\\n\"],\"b\":{\"c\":null,\"d\":true}}";
	for (size_t n = 0; n < strlen(text); n++)
		assert_null(json_parse(text, n));
	struct json_value *v = json_parse(text, strlen(text));
	assert_non_null(v);
	json_free(v);
}

static void depth_is_limited(void **state)
{
	char text[100];
	memset(text, '[', 50);
	memset(text + 50, ']', 50);
	assert_null(json_parse(text, 100));
	struct json_value *v = json_parse(text + 50 - 32, 64);
	assert_non_null(v);
	json_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(commas_and_nesting_are_put_by_themselves),
	    cmocka_unit_test(texts_are_escaped_and_come_back),
	    cmocka_unit_test(bytes_that_are_not_utf8_become_the_replacement_character),
	    cmocka_unit_test(numbers_come_back_exactly),
	    cmocka_unit_test(values_are_found_and_have_fallbacks),
	    cmocka_unit_test(malformed_texts_are_refused),
	    cmocka_unit_test(every_prefix_of_a_document_is_refused),
	    cmocka_unit_test(depth_is_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
