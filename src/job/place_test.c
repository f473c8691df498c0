/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "job/place.h"

static void placed(uint32_t nranks, uint32_t nodes, uint32_t per_node, const char *wanted)
{
	struct placement p;
	struct error err;
	char text[64] = "";

	assert_int_equal(placement_make(&p, nranks, nodes, per_node, &err), HALE_OK);
	for (uint32_t r = 0; r < nranks; r++) {
		assert_true(p.node_of[r] < p.nodes);
		text[r] = (char)('0' + p.node_of[r]);
	}
	assert_string_equal(text, wanted);
	placement_fini(&p);
}

static void ranks_in_a_row_share_a_node(void **state)
{
	placed(4, 0, 0, "0000");
	placed(4, 2, 0, "0011");
	placed(4, 4, 0, "0123");
	placed(5, 2, 0, "00111");
	placed(7, 3, 0, "0011222");
	placed(5, 0, 2, "00112");
	placed(6, 2, 4, "000011");
}

static void refused(uint32_t nranks, uint32_t nodes, uint32_t per_node, const char *why)
{
	struct placement p;
	struct error err;

	assert_int_equal(placement_make(&p, nranks, nodes, per_node, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, why));
}

static void what_does_not_fit_is_refused(void **state)
{
	refused(3, 4, 0, "can't fill 4 nodes");
	refused(5, 2, 2, "too few for 5 ranks");
	refused(4, 3, 2, "leave some of the 3 nodes empty");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ranks_in_a_row_share_a_node),
	    cmocka_unit_test(what_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
