/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of redundant_test.c that compare messages (--sdc), and those of three replicas. A part
 * of that file, after the job and its flips. */
#ifndef HALE_DELIVER_REDUNDANT_COMPARE_CASES_H
#define HALE_DELIVER_REDUNDANT_COMPARE_CASES_H

static int compared_over(void **unused)
{
	compared(2, COMPARE_OFF);
	lend_min = UINT32_MAX;
	flip_at = 0;
	return 0;
}

static void compared_jobs_end_whoever_dies(void **unused)
{
	for (enum compare_mode mode = COMPARE_HASH; mode <= COMPARE_FULL; mode++) {
		compared(2, mode);
		undisturbed_jobs_end(NULL);
		memory_at_its_bound_lets_senders_wait_but_nothing_is_lost(NULL);
		whoever_dies_whenever_nothing_is_lost(NULL);
		one_of_each_rank_may_die(NULL);
	}
	assert_int_equal(told_count, 0);
}

/* A job of which one record gets a wrong bit; until somebody notices, since nobody may take it
 * (on_arrive looks at every byte). */
static bool flip_is_noticed(unsigned seed, uint32_t at)
{
	state = seed * 977 + 1;
	flip_at = at;
	flip_each = UINT32_MAX;
	flip_slot = seed % degree;
	flip_records = flipped = told_count = 0;
	everything_begins(1 << 20);
	while (told_count == 0 && !all_over())
		random_step();
	everything_ends();
	assert_int_equal(told_count > 0, flipped > 0);
	if (flipped > 0)
		assert_int_equal(told.guilty, 0);
	return flipped > 0;
}

static void no_flip_is_missed_by_two(void **unused)
{
	uint32_t wanted = getenv("HALE_LONG") ? 10000 : 600, noticed = 0;
	for (unsigned seed = 1; noticed < wanted; seed++) {
		compared(2, seed % 3 ? COMPARE_HASH : COMPARE_FULL);
		noticed += flip_is_noticed(seed, 1 + seed * 7 % 300);
	}
}

/* One replica of each rank is wrong now and then: the others outvote it. */
static void flips_are_corrected_by_three(void **unused)
{
	uint32_t all = 0;
	for (unsigned seed = 1; seed <= 100; seed++) {
		compared(3, seed % 3 ? COMPARE_HASH : COMPARE_FULL);
		flip_at = 1 + seed % 9;
		flip_each = 1 + seed % 40;
		flip_slot = seed % 3;
		lend_min = seed % 4 == 0 ? LENT : UINT32_MAX;
		flip_records = flipped = told_count = 0;
		job(seed, seed % 2 ? 1 << 20 : 3000, NULL, NULL, 0);
		assert_true(told_count > 0 && told_count <= flipped);
		assert_int_equal(told.guilty, 1u << flip_slot);
		all += flipped;
	}
	assert_true(all > 1000);
}

/* Of three, two of each rank die, perhaps at once: whoever is left knows what the others have let
 * anybody see. */
static void two_of_each_rank_of_three_may_die(void **unused)
{
	compared(3, COMPARE_OFF);
	int steps = job(1, 1 << 20, NULL, NULL, 0);
	for (unsigned seed = 1; seed <= 400; seed++) {
		uint32_t victim[2 * RANKS];
		int when[2 * RANKS];
		compared(3, (enum compare_mode)(seed % 3));
		state = seed;
		for (uint32_t r = 0; r < RANKS; r++) {
			uint32_t survivor = draw(3);
			for (uint32_t i = 0; i < 2; i++) {
				victim[2 * r + i] = r + (survivor + 1 + i) % 3 * RANKS;
				when[2 * r + i] = (int)draw((uint32_t)steps);
			}
		}
		job(seed, seed % 2 ? 1 << 20 : 900, victim, when, 2 * RANKS);
	}
}

#endif
