/* SPDX-License-Identifier: BSD-3-Clause */
/* All small cases: what must hold is said here in other words than in levels.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "policy/levels.h"

enum { NODES = 3, STOCKS = 3 };

/* ---- which images are copied ---- */

static void an_image_that_nobody_has_is_not_copied(void **state)
{
	(void)state;
	for (uint32_t bits = 0; bits < 16; bits++) {
		struct levels_copies c =
		    levels_copies_wanted(&(struct levels_image){.partner = bits & 1,
								.partner_has = bits & 2,
								.local = bits & 4,
								.share = bits & 8,
								.listed_max = 4});

		assert_false(c.to_partner || c.to_shared);
	}
}

static void a_partner_gets_what_it_lacks_until_two_nodes_have_it(void **state)
{
	(void)state;
	for (uint32_t listed = 1; listed <= 4; listed++)
		for (uint32_t there = 1; there <= listed; there++)
			for (uint32_t has = 0; has < 2; has++) {
				struct levels_image i = {.owner = true,
							 .partner = true,
							 .partner_has = has,
							 .listed = listed,
							 .listed_max = 4,
							 .there = there};
				bool wanted = levels_copies_wanted(&i).to_partner;

				assert_int_equal(wanted, there == 1 && !has && listed != 4);
				i.partner = false;
				assert_false(levels_copies_wanted(&i).to_partner);
			}
}

static void the_shared_folder_gets_what_it_lacks_of_checkpoints_that_go_there(void **state)
{
	struct levels_image i = {.owner = true, .local = true, .share = true, .listed_max = 4};

	(void)state;
	assert_true(levels_copies_wanted(&i).to_shared);
	i.local = false;
	assert_false(levels_copies_wanted(&i).to_shared);
	i.local = true;
	i.share = false;
	assert_false(levels_copies_wanted(&i).to_shared);
}

/* ---- which checkpoints stay ---- */

struct stock {
	int level;
	bool outlives[NODES];
};

/* The n-th of all stocks of one checkpoint: what level 2 and 4 outlive is every node. */
static struct stock stock_of(uint32_t n)
{
	static const int levels[4] = {0, 1, 2, 4};
	struct stock s = {.level = levels[n % 4]};

	for (uint32_t k = 0; k < NODES; k++)
		s.outlives[k] = s.level > 1 || (n / 4) >> k & 1;
	return s;
}

static bool some_kept(const struct stock *s, const bool *kept, uint32_t from, int level, int node)
{
	for (uint32_t i = from; i < STOCKS; i++)
		if (kept[i] && s[i].level >= level && (node < 0 || s[i].outlives[node]))
			return true;
	return false;
}

/* s[0] is the oldest. */
static void check_choice(const struct stock *s, const bool *there)
{
	bool covered[NODES], kept[STOCKS] = {false};
	struct levels_keep k = levels_keep_begin(NODES, there, covered);

	for (uint32_t i = STOCKS; i-- > 0 && !levels_keep_done(&k);)
		kept[i] = levels_keep_wants(&k, &(struct levels_stock){s[i].level, s[i].outlives});
	for (uint32_t i = 0; i < STOCKS; i++) {
		bool needed = false;

		if (s[i].level == 0) {
			assert_false(kept[i]);
			continue;
		}
		/* what goes is outdone by something newer that stays, whatever is lost */
		assert_true(kept[i] || some_kept(s, kept, i + 1, s[i].level, -1));
		for (int n = 0; n < NODES; n++) {
			bool newer = some_kept(s, kept, i + 1, 1, n);

			assert_true(kept[i] || !there[n] || !s[i].outlives[n] || newer);
			needed = needed || (there[n] && s[i].outlives[n] && !newer);
		}
		/* and nothing stays without such a reason */
		assert_int_equal(kept[i],
				 !some_kept(s, kept, i + 1, 4, -1) &&
				     (needed || !some_kept(s, kept, i + 1, s[i].level, -1)));
	}
}

static void nothing_goes_before_something_newer_survives_as_much(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 32 * 32 * 32; n++) {
		struct stock s[STOCKS] = {stock_of(n % 32), stock_of(n / 32 % 32),
					  stock_of(n / 32 / 32)};

		for (uint32_t there = 0; there < 1 << NODES; there++)
			check_choice(s, (bool[NODES]){there & 1, there & 2, there & 4});
	}
}

/* ---- where an image is looked for ---- */

static void check_places(const struct levels_holder *holders, uint32_t count, bool local)
{
	uint32_t tried = 0, holder, asked[2][2] = {{0}}, shared = 0;
	levels_place_t place, last = LEVELS_HERE;

	while ((place = levels_fetch_next(&tried, holders, count, local, &holder)) !=
	       LEVELS_NOWHERE) {
		assert_true(place >= last); /* the rank's own node first, other nodes last */
		last = place;
		shared += place == LEVELS_SHARED;
		if (place == LEVELS_SHARED)
			continue;
		assert_true(holder < count);
		asked[place == LEVELS_HERE][holder]++;
	}
	assert_int_equal(shared, !local);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(asked[1][i], holders[i].usable && holders[i].here);
		assert_int_equal(asked[0][i], holders[i].usable && !holders[i].here);
	}
	/* and stays at its end */
	assert_int_equal(levels_fetch_next(&tried, holders, count, local, &holder), LEVELS_NOWHERE);
}

static void each_place_is_looked_at_once_the_nearest_first(void **state)
{
	(void)state;
	for (uint32_t bits = 0; bits < 16; bits++)
		for (uint32_t count = 0; count <= 2; count++)
			for (uint32_t local = 0; local < 2; local++)
				check_places((struct levels_holder[2]){{bits & 1, bits & 2},
								       {bits & 4, bits & 8}},
					     count, local);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_image_that_nobody_has_is_not_copied),
	    cmocka_unit_test(a_partner_gets_what_it_lacks_until_two_nodes_have_it),
	    cmocka_unit_test(the_shared_folder_gets_what_it_lacks_of_checkpoints_that_go_there),
	    cmocka_unit_test(nothing_goes_before_something_newer_survives_as_much),
	    cmocka_unit_test(each_place_is_looked_at_once_the_nearest_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
