/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of redundant_test.c in which a shadow jumps while all others run (docs/shadows.md, "One
 * pair alone"). A part of that file, after the job: here is the head, and what an image does. */
#ifndef HALE_DELIVER_REDUNDANT_JUMP_CASES_H
#define HALE_DELIVER_REDUNDANT_JUMP_CASES_H

/* ---- an image of a process, in another one ---- */

static struct word *words_copy_of(const struct word *from, struct word **last)
{
	struct word *first = NULL, **at = &first;
	*last = NULL;
	for (; from; from = from->next) {
		*at = replica_memory(sizeof(*from) + from->envelope.length);
		memcpy(*at, from, sizeof(*from) + from->envelope.length);
		*last = *at;
		at = &(*at)->next;
	}
	*at = NULL;
	return first;
}

static struct kept *kept_copy_of(const struct kept *from)
{
	struct kept *k = kept_alloc(from->envelope.length);
	size_t room = k->room;
	memcpy(k, from, sizeof(*k) + from->envelope.length);
	k->room = room;
	return k;
}

/* What is held, which `at` points to, is the original's. */
static void held_copy(struct held **at)
{
	for (; *at; at = &(*at)->next) {
		struct held *h = replica_memory(sizeof(*h));
		*h = **at;
		for (uint32_t s = 0; s < LIVING_DEGREE_MAX; s++)
			if (h->claim[s].copy)
				h->claim[s].copy = kept_copy_of(h->claim[s].copy);
		*at = h;
	}
}

/* wires: those of the copy, which point into what the original keeps. */
static void remote_copy(struct remote *to, const struct remote *from, struct wire *wires)
{
	*to = *from;
	to->first = to->last = to->reserved = NULL;
	assert_null(from->syncs);
	for (const struct kept *k = from->first; k; k = k->next) {
		struct kept *c = kept_copy_of(k);
		c->prev = to->last;
		c->next = NULL;
		*(to->last ? &to->last->next : &to->first) = c;
		to->last = c;
		for (uint32_t p = 0; p < processes; p++)
			if (wires[p].next == k)
				wires[p].next = c;
	}
	for (size_t i = 0; i < ARRAY_LEN(to->lanes); i++) {
		if (!from->lanes[i])
			continue;
		to->lanes[i] = replica_memory(LANES * sizeof(struct lane));
		memcpy(to->lanes[i], from->lanes[i], LANES * sizeof(struct lane));
		for (uint32_t k = 0; k < LANES; k++)
			held_copy(&to->lanes[i][k].held);
	}
}

static struct replicas image_of(const struct replicas *from)
{
	struct replicas r = *from;
	r.view.lost = heap_calloc(processes, 1);
	r.wire = heap_calloc(processes, sizeof(*r.wire));
	r.remote = heap_calloc(RANKS, sizeof(*r.remote));
	memcpy(r.view.lost, from->view.lost, processes);
	r.log = words_copy_of(from->log, &r.log_last);
	memcpy(r.wire, from->wire, processes * sizeof(*r.wire));
	for (uint32_t i = 0; i < RANKS; i++)
		remote_copy(&r.remote[i], &from->remote[i], r.wire);
	for (uint32_t p = 0; p < processes; p++) {
		r.wire[p].first = words_copy_of(from->wire[p].first, &r.wire[p].last);
		if (from->wire[p].assembly)
			r.wire[p].assembly = kept_copy_of(from->wire[p].assembly);
	}
	return r;
}

/* ---- the head ---- */

enum jump_phase { JUMP_BEFORE, JUMP_ASKED, JUMP_WHOLE, JUMP_JOINS, JUMP_OVER };

static struct {
	enum jump_phase phase;
	uint32_t source, old, copy;
	int at; /* step at which it begins */
	bool kept, joined;
} jump;
static uint32_t jumps_done, jumps_given_up;

enum { JUMP_ID = 7 };

static bool joins(uint32_t p)
{
	return jump.phase == JUMP_JOINS && p == jump.copy && !jump.joined;
}

void link_copy_tell(uint32_t copy, bool joined)
{
	assert_int_equal(copy, jump.copy);
	*(joined ? &jump.joined : &jump.kept) = true;
}

static void copy_ends(void)
{
	process[jump.copy].dead = true;
	atomic_store(&segment_mailbox(segment, jump.copy)->lost, 1);
	lost[jump.copy] = 1;
}

static void jump_give_up(void)
{
	atomic_store(&segment_mailbox(segment, jump.source)->ckpt_cancelled, JUMP_ID);
	if (jump.phase == JUMP_JOINS) {
		copy_ends();
		atomic_store(&segment->view, ++deaths_told);
	}
	jump.phase = JUMP_OVER;
	jumps_given_up++;
}

/* The death of that process is about to be told. */
static void jump_hear_of_death(uint32_t p)
{
	if (jump.phase == JUMP_ASKED || jump.phase == JUMP_WHOLE ||
	    (jump.phase == JUMP_JOINS && (p == jump.source || p == jump.copy)))
		jump_give_up();
}

static void image_take(void)
{
	struct redundant_process *from = &process[jump.source], *to = &process[jump.copy];
	struct link link = to->link;
	switch_to(jump.copy);
	redundant_close();
	to->state = replicas;
	switch_to(jump.source);
	redundant_cut();
	from->state = replicas;
	*to = *from;
	to->state = image_of(&replicas);
	to->link = link;
	to->dead = true;
	redundant_rejoin(false);
	redundant_resume();
}

static void copy_goes_on(void)
{
	atomic_store(&segment_mailbox(segment, jump.copy)->lost, 0);
	atomic_store(&segment_mailbox(segment, jump.copy)->alone, 1);
	lost[jump.copy] = 0;
	process[jump.copy].dead = false;
	switch_to(jump.copy);
	redundant_rejoin(true);
	redundant_channels();
	redundant_resume();
	atomic_store(&segment->view, ++deaths_told);
}

static void jump_step(int steps)
{
	bool ends = anybody_left() || process[jump.source].left;
	switch (jump.phase) {
	case JUMP_BEFORE:
		if (steps < jump.at || ends || process[jump.source].dead || process[jump.old].dead)
			return;
		switch_to(jump.source);
		redundant_announce(jump.copy, JUMP_ID);
		jump.phase = JUMP_ASKED;
		return;
	case JUMP_ASKED:
	case JUMP_WHOLE:
		if (ends) {
			jump_give_up();
		} else if (jump.phase == JUMP_WHOLE && draw(40) == 0) {
			copy_goes_on();
			jump.phase = JUMP_JOINS;
		} else if (jump.phase == JUMP_ASKED && jump.kept && !process[jump.source].dead &&
			   draw(40) == 0) {
			image_take();
			jump.phase = JUMP_WHOLE;
		}
		return;
	case JUMP_JOINS:
		if (!jump.joined || draw(20) != 0)
			return;
		if (!process[jump.old].dead) {
			kill_process(jump.old);
			death_publish(jump.old);
		}
		jump.phase = JUMP_OVER;
		jumps_done++;
		return;
	case JUMP_OVER:
		return;
	}
}

struct victim {
	uint32_t process;
	int when; /* step at which it dies */
};

static bool is_last_of_rank(uint32_t process_number)
{
	uint32_t n = 0;

	for (uint32_t p = process_number % RANKS; p < processes; p += RANKS)
		n += !process[p].dead;
	return n == 1;
}

/* As job, with a jump of that rank's shadow. The last process of a rank does not die. */
static void job_with_jump_and_deaths(unsigned seed, size_t kept_max, uint32_t rank, int at,
				     const struct victim *victims, int n)
{
	int noticed[RANKS] = {0};
	state = seed * 977 + 1;
	everything_begins(kept_max);
	memset(&jump, 0, sizeof(jump));
	jump.source = rank;
	jump.old = RANKS + rank;
	jump.copy = 2 * RANKS + rank;
	jump.at = at;
	for (int steps = 0; !all_over(); steps++) {
		assert_true(steps < 400000); /* somebody waits for ever */
		for (int i = 0; i < n; i++) {
			uint32_t p = victims[i].process;
			if (steps >= victims[i].when && !process[p].dead && !process[p].left &&
			    !lost[p] && noticed[i] == 0 && !is_last_of_rank(p)) {
				kill_process(p);
				noticed[i] = steps + 1 + (int)draw(200);
			}
			if (noticed[i] > 0 && process[p].dead && !lost[p] && steps >= noticed[i]) {
				jump_hear_of_death(p);
				if (!lost[p])
					death_publish(p);
			}
		}
		jump_step(steps);
		random_step();
	}
	everything_ends();
}

/* victim: processes: nobody dies */
static void job_with_jump(unsigned seed, size_t kept_max, uint32_t rank, int at, uint32_t victim,
			  int when)
{
	struct victim v = {victim, when};

	job_with_jump_and_deaths(seed, kept_max, rank, at, &v, victim < processes);
}

static int jumps_over(void **unused)
{
	memset(&jump, 0, sizeof(jump));
	return shadows_over(unused);
}

static void jumps_begin(void)
{
	shadows = true;
	compared(LIVING_SHADOW_SLOTS, COMPARE_OFF);
	jumps_done = jumps_given_up = 0;
}

static void a_shadow_jumps_while_all_others_run(void **unused)
{
	int steps;
	jumps_begin();
	steps = job(1, 1 << 20, NULL, NULL, 0);
	for (int seed = 1; seed <= 400; seed++)
		job_with_jump((unsigned)seed, seed % 3 ? 1 << 20 : 700, (uint32_t)seed % RANKS,
			      seed * 7 % (steps / 2), processes, 0);
	assert_true(jumps_done > 200);
}

/* The main, the shadow, the copy, a main or a shadow of others, at every so manieth step. */
static void whoever_dies_in_the_jump_of_one_pair_nothing_is_lost(void **unused)
{
	int steps;
	jumps_begin();
	steps = job(1, 1 << 20, NULL, NULL, 0);
	for (uint32_t p = 0; p < processes; p++)
		for (int when = 0; when < steps; when += 1 + steps / 60)
			for (unsigned more = 0; more < 4; more++)
				job_with_jump((unsigned)when % 7 + 1 + more * 13,
					      when % 3 ? 1 << 20 : 700, 0,
					      when > 300 ? when - (int)(more * 70) : 0, p, when);
	assert_true(jumps_done > 200 && jumps_given_up > 200);
}

/* One of each rank, main or shadow, or the copy: all about the time of the jump. A main that dies
 * at the end may leave to a shadow what others lack. */
static void one_of_each_rank_may_die_about_a_jump(void **unused)
{
	int steps;
	jumps_begin();
	steps = job(1, 1 << 20, NULL, NULL, 0);
	for (unsigned seed = 1; seed <= 1000; seed++) {
		struct victim v[RANKS];
		state = seed * 31 + 7;
		int about = (int)draw((uint32_t)steps), at = about - (int)draw(400);
		for (uint32_t r = 0; r < RANKS; r++)
			v[r] = (struct victim){draw(r == 0 ? 3 : 2) * RANKS + r,
					       about + (int)draw(300)};
		job_with_jump_and_deaths(seed, seed % 3 ? 1 << 20 : 700, 0, at < 0 ? 0 : at, v,
					 RANKS);
	}
	assert_true(jumps_given_up > 500);
}

#endif
