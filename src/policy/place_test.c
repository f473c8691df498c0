/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "policy/place.h"

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

static void repaired(const char *before, const char *nodes, const char *slots, const char *wanted)
{
	struct placement p = {0};
	struct place_node at[8] = {0};
	struct error err;
	uint32_t nranks = (uint32_t)strlen(before), count = (uint32_t)strlen(nodes);
	uint32_t node_of[16];
	char text[17] = "";

	for (uint32_t r = 0; r < nranks; r++)
		node_of[r] = (uint32_t)(before[r] - '0');
	/* r ready, s spare, l lost; R and S: unusable */
	for (uint32_t k = 0; k < count; k++)
		at[k] = (struct place_node){.slots = (uint32_t)(slots[k] - '0'),
					    .spare = nodes[k] == 's' || nodes[k] == 'S',
					    .unusable = nodes[k] == 'R' || nodes[k] == 'S',
					    .lost = nodes[k] == 'l'};
	p.node_of = node_of;
	if (placement_repair(&p, nranks, at, count, &err) != HALE_OK) {
		assert_string_equal(wanted, "none");
		return;
	}
	for (uint32_t r = 0; r < nranks; r++) {
		assert_false(at[node_of[r]].lost || at[node_of[r]].spare);
		text[r] = (char)('0' + node_of[r]);
	}
	assert_string_equal(text, wanted);
}

static void ranks_of_a_lost_node_find_another_one(void **state)
{
	repaired("0011", "rr", "00", "0011");	/* nothing is lost */
	repaired("0011", "rls", "000", "0022"); /* together onto the spare */
	repaired("0011", "lrs", "000", "2211");
	repaired("0011", "lls", "000", "2222"); /* one spare for two: it has become a node */
	repaired("001122", "llrss", "00000", "334422"); /* each its own */
	repaired("0001", "lrss", "3113", "3331");	/* onto the one with room */
	repaired("0001", "lrss", "3110", "3331");	/* slots that are not said */
	repaired("0001", "lrss", "3112", "3331");	/* no room: the largest */
	repaired("00011", "llss", "3232", "22233");	/* each where there is room */
	repaired("0011", "lr", "00", "1111");		/* no spare: doubled up */
	repaired("001122", "rlr", "000", "000222"); /* on the least loaded, the first of equals */
	repaired("001122", "rlr", "104", "002222"); /* for its slots */
	repaired("11", "rlr", "114", "22");	    /* both empty: as full as it will be */
	repaired("0011", "ll", "00", "none");
	repaired("0011", "rl", "00", "0000");
	repaired("0011", "rlSs", "0000", "0033"); /* the spare that is well */
	repaired("0011", "rlS", "000", "0000");	  /* rather doubled up than there */
	repaired("001122", "Rlr", "000", "002222");
	repaired("0011", "RlS", "000", "0022"); /* nobody is well */
	repaired("0011", "Rl", "00", "0000");
}

static void slots_are_filled_in_order(void **state)
{
	struct place_node nodes[] = {{.slots = 1}, {.slots = 3}, {.slots = 2}};
	struct placement p;
	struct error err;

	assert_int_equal(placement_fill(&p, 5, nodes, 3, &err), HALE_OK);
	assert_int_equal(p.node_of[0], 0);
	assert_int_equal(p.node_of[3], 1);
	assert_int_equal(p.node_of[4], 2);
	placement_fini(&p);
	assert_int_equal(placement_fill(&p, 7, nodes, 3, &err), HALE_ERR_ARGUMENT);
	nodes[1].spare = true;
	assert_int_equal(placement_fill(&p, 5, nodes, 3, &err), HALE_ERR_ARGUMENT);
}

static void a_dead_replica_comes_back_where_there_is_place(void **state)
{
	struct place_node nodes[5] = {{0}}; /* the last one is no node of the job */
	uint32_t there[5] = {2, 1, 0, 1};
	bool beside[5] = {true};

	assert_int_equal(place_replica(nodes, there, beside, 4, 3), 3);
	assert_int_equal(place_replica(nodes, there, beside, 4, 4), 2); /* it died nowhere */
	nodes[3].lost = true;
	nodes[2].spare = true;
	assert_int_equal(place_replica(nodes, there, beside, 4, 3), 2);
	nodes[2].unusable = true;
	assert_int_equal(place_replica(nodes, there, beside, 4, 3), 1);
	there[1] = 2; /* as full as the fullest */
	assert_int_equal(place_replica(nodes, there, beside, 4, 3), 4);
	nodes[1].slots = 3;
	assert_int_equal(place_replica(nodes, there, beside, 4, 3), 1);
	beside[1] = true;
	assert_int_equal(place_replica(nodes, there, beside, 4, 3), 4);
	/* beside its mate only where it has been */
	assert_int_equal(place_replica(nodes, there, beside, 4, 1), 1);
	assert_int_equal(place_replica(nodes, there, beside, 4, 3), 4);
	nodes[0].lost = nodes[1].lost = nodes[2].lost = true;
	assert_int_equal(place_replica(nodes, there, beside, 4, 9), 4);
}

static void copies_of_an_audit_keep_away_from_each_other(void **state)
{
	struct place_node nodes[4] = {{0}};
	uint32_t there[4] = {1, 1, 1, 0}, away[2] = {3, 0};

	assert_int_equal(place_apart(nodes, there, 4, away + 1, 1), 3);
	assert_int_equal(place_apart(nodes, there, 4, away, 2), 1);
	nodes[1].unusable = nodes[2].lost = true;
	/* nobody is left but those two: rather the one that was named last */
	assert_int_equal(place_apart(nodes, there, 4, away, 2), 0);
	nodes[0].unusable = true;
	assert_int_equal(place_apart(nodes, there, 4, away, 2), 3);
	nodes[3].lost = true;
	assert_int_equal(place_apart(nodes, there, 4, away, 2), 4);
	nodes[0].unusable = nodes[1].unusable = false;
	nodes[0].slots = 2; /* half full is less than one of one */
	assert_int_equal(place_apart(nodes, there, 4, away, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ranks_in_a_row_share_a_node),
	    cmocka_unit_test(what_does_not_fit_is_refused),
	    cmocka_unit_test(ranks_of_a_lost_node_find_another_one),
	    cmocka_unit_test(a_dead_replica_comes_back_where_there_is_place),
	    cmocka_unit_test(slots_are_filled_in_order),
	    cmocka_unit_test(copies_of_an_audit_keep_away_from_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
