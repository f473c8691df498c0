/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of redundant_test.c in which dead processes come back as copies of living ones while
 * all stand still (docs/redundancy.md, "Clones"). A part of that file, behind the cases with jumps:
 * here is the head, and the agent that makes a new segment. */
#ifndef HALE_DELIVER_REDUNDANT_CLONE_CASES_H
#define HALE_DELIVER_REDUNDANT_CLONE_CASES_H

static bool stopped[PROCESSES_MAX];
static uint32_t clones_done;
static bool source_dies; /* right behind GO, when one process has gone on */

static uint32_t living_of(uint32_t rank)
{
	uint32_t n = 0;

	for (uint32_t p = rank; p < processes; p += RANKS)
		n += !process[p].dead;
	return n;
}

static uint32_t stopped_count(void)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < processes; p++)
		n += stopped[p] && !process[p].dead;
	return n;
}

static uint32_t living_count_all(void)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < processes; p++)
		n += !process[p].dead;
	return n;
}

/* Those that stand still don't go on, and nobody ends. */
static void step_between(void)
{
	uint32_t p = draw(processes);

	if (process[p].dead || stopped[p])
		return;
	process_step(p);
}

/* What was sent is in the memory of its receiver, as behind the markers. */
static void drain(void)
{
	bool again = true;

	while (again) {
		again = false;
		for (uint32_t p = 0; p < processes; p++) {
			if (process[p].dead)
				continue;
			switch_to(p);
			again |= channel_poll_all() > 0;
		}
	}
}

static void all_stop(void)
{
	memset(stopped, 0, sizeof(stopped));
	while (stopped_count() < living_count_all()) {
		uint32_t p = draw(processes);
		if (process[p].dead || stopped[p])
			continue;
		for (int i = 0; i < 20; i++)
			step_between();
		switch_to(p);
		redundant_suspend();
		stopped[p] = true;
	}
	drain();
}

static uint32_t copy_make(uint32_t copy)
{
	struct redundant_process *to = &process[copy];
	struct link link = to->link;
	uint32_t source = copy % RANKS;

	while (process[source].dead)
		source += RANKS;
	switch_to(copy);
	redundant_close();
	to->state = replicas;
	switch_to(source);
	process[source].state = replicas;
	*to = process[source];
	to->state = image_of(&replicas);
	to->link = link;
	stopped[copy] = true;
	return source;
}

/* With the view of before: the one in which the copy lives comes when all go on. */
static void segment_make(void)
{
	memset(segment, 0, segment_used);
	segment_layout(segment, processes, 2, 1);
	segment->audits = audits;
	for (uint32_t p = 0; p < processes; p++)
		lost[p] = process[p].dead;
	segment_view_first(segment, lost, deaths_told);
	memset(queue, 0, sizeof(queue));
}

static void all_go_on(uint32_t source)
{
	uint32_t gone_on = 0;

	while (stopped_count() > 0) {
		uint32_t p = draw(processes);
		if (stopped[p] && !process[p].dead) {
			switch_to(p);
			redundant_rejoin(true);
			redundant_channels();
			redundant_resume();
			stopped[p] = false;
			if (++gone_on == 1 && source_dies && source != p) {
				kill_process(source);
				death_publish(source);
			}
		}
		for (int i = 0; i < 30; i++)
			step_between();
	}
}

static void clone_make(uint32_t copy)
{
	uint32_t source;

	all_stop();
	source = copy_make(copy);
	segment_make();
	all_go_on(source);
	atomic_store(&segment->view, ++deaths_told);
	clones_done++;
}

/* The victim dies at step `when`, is noticed 50 steps later, and comes back as a copy. */
static void job_with_clone(unsigned seed, size_t kept_max, uint32_t victim, int when)
{
	int back = INT32_MAX;

	state = seed * 977 + 1;
	everything_begins(kept_max);
	for (int steps = 0; !all_over(); steps++) {
		assert_true(steps < 400000); /* somebody waits for ever */
		if (steps == when && !process[victim].left) {
			kill_process(victim);
			back = when + 60 + (int)draw(400);
		}
		if (process[victim].dead && !lost[victim] && steps == when + 50)
			death_publish(victim);
		if (steps == back && !anybody_left())
			clone_make(victim);
		random_step();
	}
	everything_ends();
}

static void clones_of_all(uint32_t of, size_t kept_max)
{
	int steps;

	compared(of, COMPARE_OFF);
	clones_done = 0;
	steps = job(1, kept_max, NULL, NULL, 0);
	for (uint32_t v = 0; v < processes; v++)
		for (int when = 0; when < steps; when += 1 + steps / 60)
			for (unsigned more = 0; more < 3; more++)
				job_with_clone((unsigned)when % 7 + 1 + more * 13, kept_max, v,
					       when);
	assert_true(clones_done > processes * 60);
}

static void who_has_died_comes_back_as_a_copy(void **unused)
{
	clones_of_all(2, 1 << 20);
	clones_of_all(2, 700);
	lend_min = LENT;
	clones_of_all(2, 1 << 20);
	clones_of_all(2, 700);
}

static int clones_over(void **unused)
{
	source_dies = false;
	return lent_over(unused);
}

/* Of three replicas two hear of what the copy decides; one may not know yet what its source has. */
static void no_decision_is_lost_or_made_twice_when_one_of_three_comes_back(void **unused)
{
	clones_of_all(3, 1 << 20);
}

/* Those that go on later find it dead, and have it living in their view. */
static void the_source_of_a_copy_dies_when_some_have_gone_on(void **unused)
{
	source_dies = true;
	clones_of_all(2, 1 << 20);
	clones_of_all(3, 1 << 20);
}

/* Deaths and copies in turn, as the scheduler likes; each of them about every so many steps. */
static void wild_job(unsigned seed, size_t kept_max, uint32_t every)
{
	enum { DEATHS = 12 };
	int noticed[PROCESSES_MAX] = {0};
	uint32_t deaths = 0, v;

	state = seed * 977 + 1;
	everything_begins(kept_max);
	for (int steps = 0; !all_over(); steps++) {
		bool unnoticed = false;
		assert_true(steps < 400000); /* somebody waits for ever */
		v = draw(processes);
		if (draw(every) == 0 && deaths < DEATHS && !process[v].dead && !process[v].left &&
		    living_of(v % RANKS) > 1) {
			kill_process(v);
			noticed[v] = steps + 1 + (int)draw(200);
			deaths++;
		}
		for (uint32_t p = 0; p < processes; p++) {
			if (process[p].dead && !lost[p] && steps >= noticed[p])
				death_publish(p);
			unnoticed |= process[p].dead && !lost[p];
		}
		v = draw(processes);
		if (draw(every) == 0 && !unnoticed && process[v].dead && !anybody_left()) {
			source_dies = draw(4) == 0;
			clone_make(v);
			source_dies = false;
		}
		random_step();
	}
	everything_ends();
}

static void wild_jobs(enum compare_mode mode, unsigned many)
{
	told_count = clones_done = 0;
	for (unsigned seed = 1; seed <= many; seed++) {
		compared(2 + seed % 2, mode);
		lend_min = seed % 5 == 0 ? LENT : UINT32_MAX;
		wild_job(seed, seed % 3 ? 1 << 20 : 900, 100 + seed % 7 * 100);
		assert_int_equal(told_count, 0);
	}
	assert_true(clones_done > many);
}

static void processes_die_and_come_back_in_turn(void **unused)
{
	wild_jobs(COMPARE_OFF, 600);
}

/* Nobody tells of a silent error where there is none. */
static void compared_processes_die_and_come_back_in_turn(void **unused)
{
	wild_jobs(COMPARE_HASH, 600);
	wild_jobs(COMPARE_FULL, 300);
}

#endif
