/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/energy.h"
#include "policy/shadows.h"

static struct error err;

static struct shadow_layout made(uint32_t nranks, uint32_t size, uint32_t domains, uint32_t cores,
				 shadow_mapping_t mapping)
{
	struct shadow_layout l;

	assert_int_equal(shadow_layout_make(&l, nranks, size, domains, cores, mapping, &err),
			 HALE_OK);
	return l;
}

static void mains_are_on(const struct shadow_layout *l, const uint32_t *wanted)
{
	for (uint32_t r = 0; r < l->nranks; r++)
		assert_int_equal(l->main_on[r], wanted[r]);
}

static void shadows_are_on(const struct shadow_layout *l, const uint32_t *wanted)
{
	for (uint32_t r = 0; r < l->nranks; r++)
		assert_int_equal(l->shadow_on[r], wanted[r]);
}

/* Figure 3(a): 16 mains in sets of 2 on 4 sockets of 6 cores. */
static void figure_3_is_laid_out(void **state)
{
	static const uint32_t mains[] = {0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3};
	static const uint32_t shadows[] = {2, 2, 2, 2, 3, 3, 3, 3, 0, 0, 0, 0, 1, 1, 1, 1};
	struct shadow_layout l = made(16, 2, 4, 6, SHADOW_MIXED);

	mains_are_on(&l, mains);
	shadows_are_on(&l, shadows);
	assert_int_equal(shadow_set_count(&l), 8);
	assert_int_equal(l.isolation, SHADOW_SETS);
	assert_int_equal(shadow_cores(16, 2), 24);
	shadow_layout_fini(&l);
}

/* Figure 4: 12 mains on 2 sockets of 6 cores, their shadows on the third. */
static void figure_4_is_laid_out(void **state)
{
	static const uint32_t mains[] = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
	static const uint32_t shadows[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
	struct shadow_layout l = made(12, 2, 3, 6, SHADOW_APART);

	mains_are_on(&l, mains);
	shadows_are_on(&l, shadows);
	assert_int_equal(l.isolation, SHADOW_SETS);
	shadow_layout_fini(&l);
}

/* Figure 3(b): M(0) and M(14) fail; S(0) and S(14) lead, S(1) and S(15) stop. */
static void figure_3b_two_mains_fail(void **state)
{
	struct shadow_layout l = made(16, 2, 4, 6, SHADOW_MIXED);
	unsigned char lost[32] = {0};
	struct living v = {.nranks = 16, .degree = 2, .lost = lost, .shadows = true};

	living_lose(&v, 0);
	living_lose(&v, 14);
	assert_int_equal(living_leader(&v, 0), 1);
	assert_int_equal(living_leader(&v, 14), 1);
	assert_int_equal(shadow_stops(&l, &v, 0, 0), 16 + 1);
	assert_int_equal(shadow_stops(&l, &v, 0, 16 + 2), 32);
	assert_int_equal(shadow_stops(&l, &v, 14, 0), 16 + 15);
	living_lose(&v, 16 + 1);
	living_lose(&v, 16 + 15);
	for (uint32_t set = 0; set < 8; set++)
		assert_int_equal(shadow_set_is_vulnerable(&l, &v, set), set == 0 || set == 7);
	/* S(1) is back, then M(1) fails: S(0), which is the main of its rank, goes on */
	lost[16 + 1] = 0;
	living_lose(&v, 1);
	assert_int_equal(shadow_stops(&l, &v, 1, 0), 32);
	/* transient failures: all are back, and it is figure 3(a) again */
	memset(lost, 0, sizeof(lost));
	for (uint32_t set = 0; set < 8; set++)
		assert_false(shadow_set_is_vulnerable(&l, &v, set));
	for (uint32_t r = 0; r < 16; r++)
		assert_int_equal(living_leader(&v, r), 0);
	shadow_layout_fini(&l);
}

static void domain_fails(const struct shadow_layout *l, struct living *v, uint32_t domain)
{
	for (uint32_t r = 0; r < l->nranks; r++) {
		if (l->main_on[r] == domain)
			living_lose(v, r);
		if (l->shadow_on[r] == domain)
			living_lose(v, l->nranks + r);
	}
}

/* Figure 3(c): any socket fails. All ranks live on, and six sets are vulnerable. */
static void figure_3c_a_socket_fails(void **state)
{
	struct shadow_layout l = made(16, 2, 4, 6, SHADOW_MIXED);

	for (uint32_t domain = 0; domain < 4; domain++) {
		unsigned char lost[32] = {0};
		struct living v = {.nranks = 16, .degree = 2, .lost = lost, .shadows = true};
		uint32_t vulnerable = 0;

		domain_fails(&l, &v, domain);
		for (uint32_t r = 0; r < 16; r++)
			assert_true(living_count(&v, r) > 0);
		for (uint32_t set = 0; set < 8; set++)
			vulnerable += shadow_set_is_vulnerable(&l, &v, set);
		assert_int_equal(vulnerable, 6);
		if (domain == 0) { /* in the figure: all but {12,13} and {14,15} */
			assert_false(shadow_set_is_vulnerable(&l, &v, 6));
			assert_false(shadow_set_is_vulnerable(&l, &v, 7));
		}
	}
	shadow_layout_fini(&l);
}

/* Figure 6: the cores of M(0) and M(14) of figure 3(b) never come back. Six sets are left, four of
 * three mains and two of two, and each rank has a shadow in another socket than its main. */
static void figure_6_sets_are_merged(void **state)
{
	struct shadow_layout l = made(16, 2, 4, 6, SHADOW_MIXED);
	unsigned char lost[32] = {0};
	struct living v = {.nranks = 16, .degree = 2, .lost = lost, .shadows = true};
	uint32_t sizes[4] = {0};

	living_lose(&v, 0);
	living_lose(&v, 14);
	l.main_on[0] = l.shadow_on[0]; /* they have been promoted where they were */
	l.main_on[14] = l.shadow_on[14];
	living_lose(&v, 16 + 1);
	living_lose(&v, 16 + 15);
	assert_true(shadow_sets_merge(&l, &v));
	assert_int_equal(shadow_set_count(&l), 6);
	for (uint32_t set = 0; set < 16; set++)
		if (shadow_set_size(&l, set) > 0)
			sizes[shadow_set_size(&l, set)]++;
	assert_int_equal(sizes[3], 4);
	assert_int_equal(sizes[2], 2);
	for (uint32_t r = 0; r < 16; r++)
		assert_int_not_equal(l.main_on[r], l.shadow_on[r]);
	assert_true(l.isolation >= SHADOW_PAIRS);
	shadow_layout_fini(&l);
}

static void sets_that_find_no_core_stay_as_they_are(void **state)
{
	struct shadow_layout l = made(4, 2, 3, 0, SHADOW_APART);
	unsigned char lost[8] = {0};
	struct living v = {.nranks = 4, .degree = 2, .lost = lost, .shadows = true};

	for (uint32_t r = 0; r < 4; r++)
		living_lose(&v, 4 + r);
	assert_false(shadow_sets_merge(&l, &v));
	for (uint32_t r = 0; r < 4; r++)
		assert_int_equal(l.set_of[r], r / 2);
	shadow_layout_fini(&l);
}

/* Whatever the numbers: with two domains or more no main shares one with its shadow, and with
 * S + 1 of them (twice S where they are mixed) no set loses two cores at once. */
static void every_layout_isolates_what_it_can(void **state)
{
	for (uint32_t n = 1; n <= 24; n++)
		for (uint32_t s = 1; s <= n && s <= 6; s++)
			for (uint32_t d = 1; d <= 9; d++) {
				struct shadow_layout mixed = made(n, s, d, 0, SHADOW_MIXED);
				struct shadow_layout apart = made(n, s, d, 0, SHADOW_APART);

				for (uint32_t r = 0; r < n; r++) {
					assert_true(mixed.main_on[r] < d && mixed.shadow_on[r] < d);
					assert_true(apart.main_on[r] < d && apart.shadow_on[r] < d);
					assert_int_equal(mixed.shadow_on[r],
							 mixed.shadow_on[r / s * s]);
				}
				assert_true(d == 1 || mixed.isolation >= SHADOW_PAIRS);
				assert_true(d == 1 || apart.isolation >= SHADOW_PAIRS);
				if (d >= 2 * s)
					assert_int_equal(mixed.isolation, SHADOW_SETS);
				if (d >= s + 1)
					assert_int_equal(apart.isolation, SHADOW_SETS);
				shadow_layout_fini(&mixed);
				shadow_layout_fini(&apart);
			}
}

static void what_cannot_be_laid_out_is_refused(void **state)
{
	struct shadow_layout l;

	assert_int_equal(shadow_layout_make(&l, 2, 4, 2, 0, SHADOW_MIXED, &err), HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "can't be made of 2 ranks"));
	assert_int_equal(shadow_layout_make(&l, 16, 2, 4, 5, SHADOW_MIXED, &err),
			 HALE_ERR_ARGUMENT);
	assert_non_null(strstr(err.text, "need 24 cores"));
}

static void shadows_are_slow_where_they_share_no_core(void **state)
{
	assert_int_equal(shadow_rate(shadow_cores(8, 4), 4, 10), 0);
	assert_int_equal(shadow_rate(shadow_cores(8, 4), 4, 64), 0);
	assert_int_equal(shadow_rate(shadow_cores(8, 4), 4, 5), 125); /* half of a quarter */
	assert_int_equal(shadow_rate(shadow_cores(1, 1), 1, 1), 500);
	assert_int_equal(shadow_rate(shadow_cores(4000, 4000), 4000, 1), 1);
}

/* Of all weights, those of the shadows are as large as their share of the cores. */
static void weights_share_the_cores_as_rates_do(void **state)
{
	for (uint32_t mains = 1; mains <= 8; mains++)
		for (uint32_t size = 1; size <= mains; size++)
			for (uint32_t cores = 1; cores < shadow_cores(mains, size); cores++) {
				uint32_t rate =
				    shadow_rate(shadow_cores(mains, size), size, cores);
				double all = mains * shadow_weight(1024, mains, mains, rate, cores);
				double part = all / (all + mains * 1024.0);

				assert_true(fabs(part * cores / mains - rate * 1e-3) < 0.005);
			}
	assert_int_equal(shadow_weight(100, 2, 2, 1, 2), 1);
}

static void others_jump_where_the_wait_is_long_enough(void **state)
{
	assert_true(fabs(shadow_catch_up(100, 0.25) - 75) < 1e-9);
	assert_true(shadow_catch_up(100, 1.2) == 0);
	assert_true(shadow_jump_pays(1, 0.1));
	assert_false(shadow_jump_pays(0.3, 0.1));
	assert_false(shadow_jump_pays(0, 0));
	assert_true(fabs(shadow_jump_rest(0.1, 0.5) - 0.9) < 1e-9);
	assert_true(fabs(shadow_jump_rest(0.001, 0.5) - 0.5) < 1e-9);
	assert_true(shadow_rollback_is_shorter(30, 5, 1));
	assert_false(shadow_rollback_is_shorter(6, 5, 1));
}

/* Four mains and two cores of shadows for 10 s, each shadow at a quarter of a core. */
static void energy_is_that_of_the_cores_that_run(void **state)
{
	const struct energy_cores mains = {40, 40}, shadows = {20, 10}, idle = {20, 0};

	assert_true(fabs(energy_of(&mains, 0.6) - 40) < 1e-9);
	assert_true(fabs(energy_of(&shadows, 0.6) - (0.6 * 20 + 0.4 * 10)) < 1e-9);
	assert_true(fabs(energy_of(&idle, 0.6) - 12) < 1e-9);
	assert_true(energy_gained(5, 7, 100) == 2);
	assert_true(energy_gained(95, 3, 100) == 8);
	assert_true(energy_gained(95, 3, 0) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(figure_3_is_laid_out),
	    cmocka_unit_test(figure_4_is_laid_out),
	    cmocka_unit_test(figure_3b_two_mains_fail),
	    cmocka_unit_test(figure_3c_a_socket_fails),
	    cmocka_unit_test(figure_6_sets_are_merged),
	    cmocka_unit_test(sets_that_find_no_core_stay_as_they_are),
	    cmocka_unit_test(every_layout_isolates_what_it_can),
	    cmocka_unit_test(what_cannot_be_laid_out_is_refused),
	    cmocka_unit_test(shadows_are_slow_where_they_share_no_core),
	    cmocka_unit_test(weights_share_the_cores_as_rates_do),
	    cmocka_unit_test(others_jump_where_the_wait_is_long_enough),
	    cmocka_unit_test(energy_is_that_of_the_cores_that_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
