/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of redundant_test.c that are about audits (docs/audit.md): each rank has a witness,
 * which stands still until it is asked. A part of that file, after the job and its flips. */
#ifndef HALE_DELIVER_REDUNDANT_AUDIT_CASES_H
#define HALE_DELIVER_REDUNDANT_AUDIT_CASES_H

static int audits_over(void **unused)
{
	audits = witnesses_are_late = false;
	return compared_over(unused);
}

/* Each rank has a witness, which stands still or (late) goes on by itself. */
static void audited(bool late)
{
	compared(3, COMPARE_HASH);
	audits = true;
	witnesses_are_late = late;
	flip_at = 0;
	told_count = calls = 0;
}

static void a_witness_that_nobody_asks_holds_nobody_up(void **unused)
{
	for (int late = 0; late < 2; late++) {
		audited(late);
		undisturbed_jobs_end(NULL);
		memory_at_its_bound_lets_senders_wait_but_nothing_is_lost(NULL);
		whoever_dies_whenever_nothing_is_lost(NULL);
		one_of_each_rank_may_die(NULL);
		assert_int_equal(told_count + calls, 0);
	}
}

/* Main or twin of each rank is wrong now and then; the witness says which. */
static void a_witness_decides_between_two_that_differ(void **unused)
{
	uint32_t all = 0;

	for (unsigned seed = 1; seed <= 200; seed++) {
		audited(seed % 5 == 0);
		flip_at = 1 + seed % 9;
		flip_each = 1 + seed % 40;
		flip_slot = seed % 2;
		lend_min = seed % 4 == 0 ? LENT : UINT32_MAX;
		flip_records = flipped = 0;
		job(seed, seed % 2 ? 1 << 20 : 3000, NULL, NULL, 0);
		assert_true(told_count > 0 && told_count <= flipped);
		assert_true(calls > 0 || witnesses_are_late);
		assert_int_equal(told.guilty, 1u << flip_slot);
		all += flipped;
	}
	assert_true(all > 1000);
}

/* A witness that is wrong accuses nobody, and is not accused, while the others agree. */
static void a_wrong_witness_does_no_harm(void **unused)
{
	for (unsigned seed = 1; seed <= 50; seed++) {
		audited(true);
		flip_at = flip_each = 1;
		flip_slot = 2;
		flip_records = flipped = 0;
		job(seed, 1 << 20, NULL, NULL, 0);
		assert_int_equal(told_count + calls, 0);
	}
}

/* Main and twin of a rank die, at any two steps: the witness is the rank. */
static void a_witness_goes_on_when_nobody_else_is_left(void **unused)
{
	audited(false);
	int steps = job(1, 1 << 20, NULL, NULL, 0);
	for (unsigned seed = 1; seed <= 300; seed++) {
		uint32_t victim[2 * RANKS];
		int when[2 * RANKS];

		audited(seed % 2);
		state = seed;
		for (uint32_t i = 0; i < 2 * RANKS; i++) {
			victim[i] = i;
			when[i] = (int)draw((uint32_t)steps);
		}
		job(seed, seed % 3 ? 1 << 20 : 900, victim, when, seed % 2 ? 2 * RANKS : RANKS + 1);
	}
}

/* Rank 0's main is wrong and convicted before all of its wrong claims are judged: they are void. */
static void claims_of_the_convicted_are_void(void **unused)
{
	uint32_t convicted = 0;

	for (unsigned seed = 1; seed <= 100; seed++) {
		int steps;

		audited(false);
		state = seed * 977 + 1;
		flip_at = 1;
		flip_each = 2;
		flip_slot = 0;
		flip_records = flipped = 0;
		everything_begins(1 << 20);
		for (steps = 0; !all_over(); steps++) {
			assert_true(steps < 400000);
			for (uint32_t r = 0; told_count > 0 && r < RANKS; r++) {
				if (process[r].dead || process[r].left)
					continue;
				/* mains and witnesses of all ranks go, as after a verdict */
				kill_process(r);
				kill_process(2 * RANKS + r);
				death_publish(r);
				atomic_store(&segment_mailbox(segment, r)->lost, LIVING_CONVICTED);
				death_publish(2 * RANKS + r);
				convicted++;
			}
			random_step();
		}
		everything_ends();
		assert_int_not_equal(told.guilty, 0);
	}
	assert_true(convicted > 100);
}

#endif
