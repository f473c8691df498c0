/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "policy/partition.h"

enum { RANKS = 12, NODES = 6 };

/* Two ranks on each of six nodes. */
static uint32_t node_of[RANKS];
static const struct partition_view view = {.node_of = node_of, .nodes = NODES};
static struct partition *c;
static bool out[NODES];

static int begin(void **state)
{
	for (uint32_t r = 0; r < RANKS; r++)
		node_of[r] = r / 2;
	c = partition_create(RANKS, NODES);
	return c ? 0 : -1;
}

static int end(void **state)
{
	partition_destroy(c);
	return 0;
}

/* All ranks of two nodes say it of each other. */
static void cut(uint32_t a, uint32_t b)
{
	for (uint32_t r = 0; r < RANKS; r++)
		for (uint32_t p = 0; p < RANKS; p++)
			if (node_of[r] == a && node_of[p] == b) {
				partition_told(c, r, p, true, 1);
				partition_told(c, p, r, true, 1);
			}
}

/* "-x--x-": of which nodes. */
static void chosen_are(const char *nodes)
{
	char got[NODES + 1] = "";
	uint32_t count = partition_choose(c, &view, out), counted = 0;

	for (uint32_t k = 0; k < NODES; k++) {
		got[k] = out[k] ? 'x' : '-';
		counted += out[k];
	}
	assert_string_equal(got, nodes);
	assert_int_equal(count, counted);
}

static void nothing_said_means_nobody_goes(void **state)
{
	struct partition_pair p;

	assert_false(partition_oldest(c, &view, &p));
	chosen_are("------");
}

static void of_two_the_later_one_goes(void **state)
{
	cut(1, 4);
	chosen_are("----x-");
}

static void one_word_of_one_rank_is_enough(void **state)
{
	partition_told(c, 2, 9, true, 1);
	chosen_are("----x-");
}

static void of_two_the_one_with_fewer_ranks_goes(void **state)
{
	node_of[3] = 4; /* node 1 has one, node 4 three */
	cut(1, 4);
	chosen_are("-x----");
}

static void who_is_cut_off_from_more_goes(void **state)
{
	cut(0, 2);
	cut(0, 3);
	cut(0, 5);
	chosen_are("x-----");
}

static void the_smaller_part_goes(void **state)
{
	for (uint32_t a = 0; a < 2; a++)
		for (uint32_t b = 2; b < NODES; b++)
			cut(a, b);
	chosen_are("xx----");
}

static void of_equal_parts_one_goes(void **state)
{
	for (uint32_t a = 0; a < 3; a++)
		for (uint32_t b = 3; b < NODES; b++)
			cut(a, b);
	chosen_are("---xxx");
}

static void who_is_cut_off_again_goes(void **state)
{
	cut(1, 4);
	chosen_are("----x-");
	partition_forget(c);
	node_of[8] = node_of[9] = 5; /* the spare's */
	cut(1, 5);
	chosen_are("-x----");
}

static void back_means_never_said(void **state)
{
	struct partition_pair p;

	partition_told(c, 0, 5, true, 1);
	partition_told(c, 0, 7, true, 2);
	partition_told(c, 4, 0, true, 3);
	partition_told(c, 0, 5, true, 4); /* again: since 1, as before */
	assert_true(partition_oldest(c, &view, &p));
	assert_true(p.rank == 0 && p.peer == 5 && p.since == 1);
	partition_told(c, 0, 5, false, 5);
	assert_true(partition_oldest(c, &view, &p));
	assert_true(p.rank == 0 && p.peer == 7 && p.since == 2);
	partition_renew(c, 6);
	assert_true(partition_oldest(c, &view, &p));
	assert_true(p.since == 6);
	partition_told(c, 0, 7, false, 7);
	partition_told(c, 4, 0, false, 7);
	partition_told(c, 4, 0, false, 8);
	assert_false(partition_oldest(c, &view, &p));
	chosen_are("------");
}

static void who_has_ended_or_lives_there_too_does_not_count(void **state)
{
	struct partition_pair p;

	partition_told(c, 0, 5, true, 1);
	node_of[5] = PARTITION_NOWHERE;
	assert_false(partition_oldest(c, &view, &p));
	node_of[5] = 0;
	assert_false(partition_oldest(c, &view, &p));
	chosen_are("------");
	node_of[5] = 2;
	assert_true(partition_oldest(c, &view, &p));
}

static void ranks_that_there_are_not_are_not_heard(void **state)
{
	struct partition_pair p;

	partition_told(c, RANKS, 0, true, 1);
	partition_told(c, 0, RANKS, true, 1);
	partition_told(c, UINT32_MAX, UINT32_MAX, true, 1);
	assert_false(partition_oldest(c, &view, &p));
}

/* Whatever is said: those left reach each other, somebody is left, and nobody goes for nothing. */
static void any_cuts(void **state)
{
	srandom(7);
	for (int turn = 0; turn < 3000; turn++) {
		bool between[NODES][NODES] = {0};

		partition_forget(c);
		for (long i = random() % 12; i > 0; i--) {
			uint32_t a = (uint32_t)random() % RANKS, b = (uint32_t)random() % RANKS;

			partition_told(c, a, b, true, 1);
			if (node_of[a] != node_of[b])
				between[node_of[a]][node_of[b]] = between[node_of[b]][node_of[a]] =
				    true;
		}
		assert_true(partition_choose(c, &view, out) < NODES);
		for (uint32_t a = 0; a < NODES; a++) {
			bool cuts = false;

			for (uint32_t b = 0; b < NODES; b++) {
				cuts |= between[a][b];
				assert_false(between[a][b] && !out[a] && !out[b]);
			}
			assert_false(out[a] && !cuts);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(nothing_said_means_nobody_goes, begin, end),
	    cmocka_unit_test_setup_teardown(of_two_the_later_one_goes, begin, end),
	    cmocka_unit_test_setup_teardown(one_word_of_one_rank_is_enough, begin, end),
	    cmocka_unit_test_setup_teardown(of_two_the_one_with_fewer_ranks_goes, begin, end),
	    cmocka_unit_test_setup_teardown(who_is_cut_off_from_more_goes, begin, end),
	    cmocka_unit_test_setup_teardown(the_smaller_part_goes, begin, end),
	    cmocka_unit_test_setup_teardown(of_equal_parts_one_goes, begin, end),
	    cmocka_unit_test_setup_teardown(who_is_cut_off_again_goes, begin, end),
	    cmocka_unit_test_setup_teardown(back_means_never_said, begin, end),
	    cmocka_unit_test_setup_teardown(who_has_ended_or_lives_there_too_does_not_count, begin,
					    end),
	    cmocka_unit_test_setup_teardown(ranks_that_there_are_not_are_not_heard, begin, end),
	    cmocka_unit_test_setup_teardown(any_cuts, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
