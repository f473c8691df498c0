/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/address.h"

static void whole_is(const char *text, const char *wanted)
{
	char out[ADDRESS_MAX];

	assert_ptr_equal(address_whole(out, text, strlen(text)), out);
	assert_string_equal(out, wanted);
	assert_string_equal(address_whole(out, wanted, strlen(wanted)), wanted);
}

static void addresses_of_ipv6_have_no_double_colon(void **state)
{
	(void)state;
	whole_is("fd00::1", "fd00:0:0:0:0:0:0:1");
	whole_is("::", "0:0:0:0:0:0:0:0");
	whole_is("FD00:0:0::0001", "fd00:0:0:0:0:0:0:1");
	whole_is("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0");
	whole_is("::ffff:10.0.0.1", "0:0:0:0:0:ffff:a00:1");
}

static void other_names_stay_as_they_are(void **state)
{
	char out[ADDRESS_MAX], longest[200];

	(void)state;
	whole_is("node3", "node3");
	whole_is("10.0.0.1", "10.0.0.1");
	whole_is("", "");
	whole_is("a::b::c", "a::b::c");
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(strlen(address_whole(out, longest, sizeof(longest))), ADDRESS_MAX - 1);
	/* only the first bytes are the name */
	assert_string_equal(address_whole(out, "fd00::1::STATE", 7), "fd00:0:0:0:0:0:0:1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(addresses_of_ipv6_have_no_double_colon),
	    cmocka_unit_test(other_names_stay_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
