/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of redundant_test.c that are about shadows (docs/shadows.md), which are slow. A part of
 * that file, after the job. */
#ifndef HALE_DELIVER_REDUNDANT_SHADOW_CASES_H
#define HALE_DELIVER_REDUNDANT_SHADOW_CASES_H

static int shadows_over(void **unused)
{
	shadows = false;
	compared(2, COMPARE_OFF);
	return 0;
}

/* The same with shadows at a quarter of the speed: whoever dies, whenever, and one of each rank.
 * Each rank has a third slot. */
static void shadows_stand_in_for_whoever_dies(void **unused)
{
	shadows = true;
	compared(LIVING_SHADOW_SLOTS, COMPARE_OFF);
	undisturbed_jobs_end(NULL);
	memory_at_its_bound_lets_senders_wait_but_nothing_is_lost(NULL);
	whoever_dies_whenever_nothing_is_lost(NULL);
	one_of_each_rank_may_die(NULL);
}

/* Seed 003, figure 2, in turns: a main makes a step in each, a shadow in each fourth. */
enum { SLOWNESS = 4 };

static void turn(int t, uint32_t victim, int when)
{
	for (uint32_t p = 0; p < processes; p++) {
		bool mine = p == victim && t >= when;
		if (mine && !process[p].dead) {
			kill_process(p);
			death_publish(p);
		}
		if (process[p].dead)
			continue;
		switch_to(p);
		while (channel_poll_all() + redundant_progress() > 0)
			continue;
		if (process[p].sent < STEPS && (!redundant_is_shadow() || t % SLOWNESS == 0))
			program_step();
	}
}

/* Turns until the rank of the victim has come to its end; what its shadow had done when it died. */
static int turns_of(uint32_t victim, int when, int *shadow_at_death)
{
	uint32_t rank = victim % RANKS;
	int t = 0;

	state = 1;
	everything_begins(1 << 20);
	while (process[rank].sent < STEPS && process[RANKS + rank].sent < STEPS) {
		if (t == when)
			*shadow_at_death = process[RANKS + rank].sent;
		turn(t++, victim, when);
		assert_true(t < 20 * STEPS);
	}
	return t;
}

static void
figure_2_a_main_that_lives_ends_first_and_a_shadow_does_the_rest_at_full_speed(void **unused)
{
	int done = 0;

	shadows = true;
	assert_in_range(turns_of(0, 10 * STEPS, &done), STEPS, STEPS + 1);
	assert_in_range(process[RANKS].sent, STEPS / SLOWNESS - 1, STEPS / SLOWNESS + 1);
	everything_ends();
	for (int when = 1; when < STEPS; when++) {
		/* t_s = t_f + (W - sigma t_f) / 1, and one turn to hear of it */
		int turns = turns_of(0, when, &done);
		assert_in_range(done, when / SLOWNESS, when / SLOWNESS + 1);
		assert_in_range(turns, when + STEPS - done, when + STEPS - done + 2);
		assert_int_equal(process[RANKS].sent, STEPS);
		everything_ends();
	}
}

#endif
