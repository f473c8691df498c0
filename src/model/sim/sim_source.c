/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include "model/sim/sim_source.h"

enum {
	SLOT_DOWN = 1,
	SLOT_LATER = 2,	  /* its first life is over */
	SLOT_TOUCHED = 4, /* in the list of those to make new */
};

enum { PURPOSE_TIMES = 1, PURPOSE_KINDS };

bool sim_source_init(struct sim_source *s, const struct sim_failures *law, uint32_t slots,
		     double limit_s)
{
	*s = (struct sim_source){.law = law, .slots = slots, .limit_s = limit_s};
	s->state = calloc(slots, 1);
	if (!law->traced && isfinite(law->law.mean_s)) {
		s->memoryless = law->law.shape == 1;
		s->scale_s = model_law_scale_s(&law->law);
		s->inverse_shape = 1 / law->law.shape;
	}
	return s->state != NULL;
}

void sim_source_fini(struct sim_source *s)
{
	free(s->state);
	free(s->touched);
	free(s->end_s);
	free(s->end_slot);
}

/* The age at which the cumulative hazard reaches h. */
static double age_at(const struct sim_source *s, double h)
{
	return s->memoryless ? s->scale_s * h : s->scale_s * pow(h, s->inverse_shape);
}

static void draw_point(struct sim_source *s)
{
	if (s->first_lives == 0) {
		s->point_s = INFINITY;
		return;
	}
	s->hazard += sim_random_exp(&s->times) / s->slots;
	s->point_s = age_at(s, s->hazard) - s->law->age_s;
	s->point_slot = sim_random_below(&s->times, s->slots);
}

static void start_trace(struct sim_source *s)
{
	const struct sim_trace *t = &s->law->trace;
	double start = s->law->random_start ? sim_random_unit(&s->times) * t->span_s : 0;
	size_t low = 0, high = t->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (t->events[middle].time_s < start)
			low = middle + 1;
		else
			high = middle;
	}
	s->event = low;
	s->shift_s = -start;
	if (s->event == t->count && s->law->random_start) {
		s->event = 0;
		s->shift_s += t->span_s;
	}
}

void sim_source_start(struct sim_source *s, uint64_t seed, uint64_t run)
{
	for (size_t i = 0; i < s->touched_count; i++)
		s->state[s->touched[i]] = 0;
	s->touched_count = 0;
	s->first_lives = s->slots;
	s->ends = 0;
	sim_random_init(&s->times, seed, run, PURPOSE_TIMES);
	sim_random_init(&s->kinds, seed, run, PURPOSE_KINDS);
	if (s->law->traced) {
		start_trace(s);
		return;
	}
	s->point_s = INFINITY;
	if (!isfinite(s->law->law.mean_s))
		return;
	s->hazard = pow(s->law->age_s / s->scale_s, s->law->law.shape);
	draw_point(s);
}

static double trace_next_s(const struct sim_source *s)
{
	const struct sim_trace *t = &s->law->trace;

	return s->event < t->count ? t->events[s->event].time_s + s->shift_s : INFINITY;
}

double sim_source_next_s(const struct sim_source *s)
{
	if (s->law->traced)
		return trace_next_s(s);
	return s->ends && s->end_s[0] < s->point_s ? s->end_s[0] : s->point_s;
}

static void heap_pop(struct sim_source *s)
{
	double time = s->end_s[--s->ends];
	uint32_t slot = s->end_slot[s->ends];
	size_t at = 0;

	for (;;) {
		size_t first = 4 * at + 1, least = first;
		if (first >= s->ends)
			break;
		for (size_t c = first + 1; c < first + 4 && c < s->ends; c++)
			if (s->end_s[c] < s->end_s[least])
				least = c;
		if (s->end_s[least] >= time)
			break;
		s->end_s[at] = s->end_s[least];
		s->end_slot[at] = s->end_slot[least];
		at = least;
	}
	s->end_s[at] = time;
	s->end_slot[at] = slot;
}

static bool heap_grow(struct sim_source *s)
{
	size_t cap = s->ends_cap ? 2 * s->ends_cap : 256;
	double *times = realloc(s->end_s, cap * sizeof(*times));

	if (times)
		s->end_s = times;
	uint32_t *slots = times ? realloc(s->end_slot, cap * sizeof(*slots)) : NULL;
	if (!slots)
		return false;
	s->end_slot = slots;
	s->ends_cap = cap;
	return true;
}

static void heap_push(struct sim_source *s, double time, uint32_t slot)
{
	if (s->ends == s->ends_cap && !heap_grow(s)) {
		s->no_memory = true;
		return;
	}
	size_t at = s->ends++;
	while (at > 0 && s->end_s[(at - 1) / 4] > time) {
		s->end_s[at] = s->end_s[(at - 1) / 4];
		s->end_slot[at] = s->end_slot[(at - 1) / 4];
		at = (at - 1) / 4;
	}
	s->end_s[at] = time;
	s->end_slot[at] = slot;
}

/* The state of a slot changes: it has to be made new for the next run. */
static void touch(struct sim_source *s, uint32_t slot)
{
	if (s->state[slot] & SLOT_TOUCHED)
		return;
	if (s->touched_count == s->touched_cap) {
		size_t cap = s->touched_cap ? 2 * s->touched_cap : 1024;
		uint32_t *more = realloc(s->touched, cap * sizeof(*more));
		if (!more) {
			s->no_memory = true;
			return;
		}
		s->touched = more;
		s->touched_cap = cap;
	}
	s->touched[s->touched_count++] = slot;
	s->state[slot] |= SLOT_TOUCHED;
}

static bool take_trace(struct sim_source *s, struct sim_strike *strike)
{
	const struct sim_trace *t = &s->law->trace;
	const struct sim_trace_event *e = &t->events[s->event];

	*strike = (struct sim_strike){trace_next_s(s), e->node, e->soft};
	if (++s->event == t->count && s->law->random_start) {
		s->event = 0;
		s->shift_s += t->span_s;
	}
	return strike->slot < s->slots && !(s->state[strike->slot] & SLOT_DOWN);
}

static bool take_drawn(struct sim_source *s, struct sim_strike *strike)
{
	bool later = s->ends && s->end_s[0] < s->point_s;

	strike->time_s = sim_source_next_s(s);
	strike->slot = later ? s->end_slot[0] : s->point_slot;
	strike->soft = false;
	if (later) {
		heap_pop(s);
		return true;
	}
	uint8_t over = s->memoryless ? SLOT_DOWN : SLOT_DOWN | SLOT_LATER;
	bool lived = !(s->state[strike->slot] & over);
	s->first_lives -= lived && !s->memoryless;
	draw_point(s);
	return lived;
}

bool sim_source_take(struct sim_source *s, struct sim_strike *strike)
{
	if (s->law->traced ? !take_trace(s, strike) : !take_drawn(s, strike))
		return false;
	if (!s->law->traced && s->law->soft > 0)
		strike->soft = sim_random_unit(&s->kinds) <= s->law->soft;
	touch(s, strike->slot);
	s->state[strike->slot] |= SLOT_DOWN | SLOT_LATER;
	return true;
}

void sim_source_renew(struct sim_source *s, uint32_t slot, double now_s)
{
	s->state[slot] &= (uint8_t)~SLOT_DOWN;
	if (s->law->traced || s->memoryless)
		return;
	double end = now_s + age_at(s, sim_random_exp(&s->times));
	if (end <= s->limit_s)
		heap_push(s, end, slot);
}
