/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "top/top.h"

static struct top_node nodes[] = {{.name = "north", .state = "READY"},
				  {.name = "south", .state = "READY"}};
static struct top_rank ranks[] = {
    {.rank = 0, .node = 1, .pid = 10, .state = "running", .cpu = 0.5, .memory = 3},
    {.rank = 1, .node = 0, .pid = 11, .state = "running", .cpu = 0.9, .memory = 1},
    {.rank = 2, .node = 0, .pid = 12, .state = "checkpointing", .cpu = -1, .memory = 2},
};
static struct top_job job = {.ranks = ranks, .rank_count = 3, .nodes = nodes, .node_count = 2};
static struct top_row rows[5];

static void expect_rows(top_sort_t sort, const char *filter, const char *wanted)
{
	size_t n = top_rows(&job, sort, filter, rows);
	char text[64] = "";

	for (size_t i = 0; i < n; i++) {
		char one[3] = {rows[i].rank < 0 ? (char)('A' + rows[i].node)
						: (char)('0' + rows[i].rank),
			       '\0'};
		strcat(text, one);
	}
	assert_string_equal(text, wanted);
}

static void by_node_each_node_has_its_ranks_below_it(void **state)
{
	expect_rows(TOP_SORT_NODE, "", "A12B0");
	nodes[0].folded = true;
	expect_rows(TOP_SORT_NODE, "", "AB0");
	nodes[0].folded = false;
}

static void a_filter_leaves_ranks_and_their_nodes(void **state)
{
	expect_rows(TOP_SORT_NODE, "CHECKP", "A2");
	expect_rows(TOP_SORT_NODE, "south", "B0");
	expect_rows(TOP_SORT_NODE, "nowhere", "");
	nodes[0].folded = true; /* who looks for it wants to see it */
	expect_rows(TOP_SORT_NODE, "checkpointing", "A2");
	nodes[0].folded = false;
}

static void other_orders_have_ranks_only(void **state)
{
	expect_rows(TOP_SORT_RANK, "", "012");
	expect_rows(TOP_SORT_CPU, "", "102");
	expect_rows(TOP_SORT_MEMORY, "", "021");
	expect_rows(TOP_SORT_STATE, "", "201");
	expect_rows(TOP_SORT_CPU, "running", "10");
}

static void ranks_of_no_known_node_are_not_lost(void **state)
{
	ranks[1].node = -1;
	expect_rows(TOP_SORT_NODE, "", "1A2B0");
	ranks[1].node = 0;
}

static void a_node_says_what_its_ranks_are(void **state)
{
	char text[96];

	top_node_summary(&job, 0, text, sizeof(text));
	assert_string_equal(text, "1 running, 1 checkpointing");
	top_node_summary(&job, 7, text, sizeof(text));
	assert_string_equal(text, "no ranks");
	top_node_summary(&job, 0, text, 8); /* too short: cut, not written over */
	assert_string_equal(text, "1 runni");
}

static void events_on_narrow_screens_lack_what_is_needed_least(void **state)
{
	static const char line[] = "2026-11-26T22:50:01.123 WARNING ftb.hale RANK_DEATH host=north "
				   "job=lmp.7 rank 3: signal 9\nnext";
	static const char plain[] = "hale: no job runs\n";
	char text[96];

	top_event_text(line, strcspn(line, "\n"), text, sizeof(text));
	assert_string_equal(text, "22:50:01 WARNING RANK_DEATH north: rank 3: signal 9");
	top_event_text(line, strcspn(line, "\n"), text, 12);
	assert_string_equal(text, "22:50:01 WA");
	top_event_text(line, 0, text, sizeof(text));
	assert_string_equal(text, "");
	top_event_text(line, 62, text, sizeof(text));
	assert_string_equal(text, "22:50:01 WARNING RANK_DEATH north");
	top_event_text(plain, strcspn(plain, "\n"), text, sizeof(text));
	assert_string_equal(text, "hale: no job runs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(by_node_each_node_has_its_ranks_below_it),
	    cmocka_unit_test(a_filter_leaves_ranks_and_their_nodes),
	    cmocka_unit_test(other_orders_have_ranks_only),
	    cmocka_unit_test(ranks_of_no_known_node_are_not_lost),
	    cmocka_unit_test(a_node_says_what_its_ranks_are),
	    cmocka_unit_test(events_on_narrow_screens_lack_what_is_needed_least),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
