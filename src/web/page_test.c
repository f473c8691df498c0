/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "web/page.h"

static char *page_with(const char *json)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_true(page_print(f, json));
	assert_int_equal(fclose(f), 0);
	assert_int_equal(strlen(text), len);
	return text;
}

static void the_data_stands_in_the_page(void **state)
{
	char *without = page_with(""), *with = page_with("{\"a\":1}");
	size_t at = 0, rest;

	while (without[at] && without[at] == with[at])
		at++;
	rest = strlen(without) - at;
	assert_true(at > 100 && rest > 100);
	assert_int_equal(strncmp(with + at, "{\"a\":1}", 7), 0);
	assert_string_equal(with + at + 7, without + at);
	assert_null(strstr(with, "@DATA@"));
	free(without);
	free(with);
}

/* The name of a program may be anything. */
static void no_string_ends_the_element_that_it_stands_in(void **state)
{
	char *text = page_with("{\"program\":\"</script><b>&\\\"\"}");

	assert_non_null(strstr(text, "{\"program\":\"\\u003c/script>\\u003cb>&\\\"\"}"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_data_stands_in_the_page),
	    cmocka_unit_test(no_string_ends_the_element_that_it_stands_in),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
