/* SPDX-License-Identifier: BSD-3-Clause */
/* What a failure does to the job. The decisions themselves are sim_policy.c's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/sim/sim_world.h"

static const struct sim_scheme *scheme_of(const struct sim_world *w)
{
	return &w->setup->plan->scheme;
}

static void *grown(struct sim_world *w, void *array, size_t count, size_t size)
{
	void *more = realloc(array, count * size);

	if (more)
		return more;
	w->no_memory = true;
	return array;
}

/* ---- spare nodes ---- */

/* Repairs are deterministic, so they end in the order in which they began. */
static void repair_begin(struct sim_world *w, double now)
{
	if (!isfinite(scheme_of(w)->repair_s))
		return;
	if (w->repair_count == w->repair_cap) {
		size_t cap = w->repair_cap ? 2 * w->repair_cap : 64;
		w->repairs = grown(w, w->repairs, cap, sizeof(*w->repairs));
		if (w->no_memory)
			return;
		/* what had wrapped around goes behind the rest */
		memcpy(w->repairs + w->repair_cap, w->repairs,
		       w->repair_first * sizeof(*w->repairs));
		w->repair_cap = cap;
	}
	w->repairs[(w->repair_first + w->repair_count++) % w->repair_cap] =
	    now + scheme_of(w)->repair_s;
}

static void repairs_settle(struct sim_world *w)
{
	while (w->repair_count && w->repairs[w->repair_first] <= w->now_s) {
		w->repair_first = (w->repair_first + 1) % w->repair_cap;
		w->repair_count--;
		w->repaired++;
	}
}

static bool spares_suffice(struct sim_world *w, size_t wanted)
{
	repairs_settle(w);
	return scheme_of(w)->spares + w->repaired - w->replaced >= (double)wanted;
}

static void spare_take(struct sim_world *w)
{
	w->replaced++;
	w->figure[SIM_SPARES]++;
	w->figure[SIM_SPARES_PEAK] = fmax(w->figure[SIM_SPARES_PEAK], w->replaced - w->repaired);
}

/* ---- lost replicas ---- */

static void lost_place(struct sim_world *w, size_t first)
{
	memmove(w->lost_base + first, w->lost_base + w->lost_first,
		w->lost_count * sizeof(*w->lost));
	memmove(w->lost_slot_base + first, w->lost_slot_base + w->lost_first,
		w->lost_count * sizeof(*w->lost_slot));
	w->lost_first = first;
}

static void lost_point(struct sim_world *w)
{
	w->lost = w->lost_base + w->lost_first;
	w->lost_slot = w->lost_slot_base + w->lost_first;
}

/* Room for one more at the end. */
static void lost_room(struct sim_world *w)
{
	if (w->lost_first + w->lost_count < w->lost_cap)
		return;
	if (w->lost_first > w->lost_cap / 2) {
		lost_place(w, 0);
	} else {
		size_t cap = w->lost_cap ? 2 * w->lost_cap : 256;
		w->lost_base = grown(w, w->lost_base, cap, sizeof(*w->lost));
		w->lost_slot_base = grown(w, w->lost_slot_base, cap, sizeof(*w->lost_slot));
		w->lost_cap = w->no_memory ? w->lost_cap : cap;
	}
	lost_point(w);
}

static void lost_add(struct sim_world *w, uint32_t slot, struct policy_lost lost)
{
	lost_room(w);
	if (w->no_memory)
		return;
	w->lost[w->lost_count] = lost;
	w->lost_slot[w->lost_count++] = slot;
	w->lost_soft += !lost.needs_spare;
}

/* The place is filled again. Those before it move up. */
static void lost_remove(struct sim_world *w, size_t i)
{
	w->down_in[w->lost[i].rank]--;
	w->lost_soft -= !w->lost[i].needs_spare;
	sim_source_renew(&w->source, w->lost_slot[i], w->now_s);
	memmove(w->lost + 1, w->lost, i * sizeof(*w->lost));
	memmove(w->lost_slot + 1, w->lost_slot, i * sizeof(*w->lost_slot));
	w->lost_first++;
	w->lost_count--;
	lost_point(w);
}

/* All places are filled, or as many as there are nodes for. */
static void lost_fill(struct sim_world *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->lost_count; i++) {
		struct policy_lost *l = &w->lost[i];
		if (l->needs_spare && !spares_suffice(w, 1)) {
			w->lost[kept] = *l;
			w->lost_slot[kept++] = w->lost_slot[i];
			continue;
		}
		if (l->needs_spare)
			spare_take(w);
		w->down_in[l->rank]--;
		sim_source_renew(&w->source, w->lost_slot[i], w->now_s);
	}
	w->lost_count = kept;
	w->lost_soft = 0;
}

/* ---- back to a checkpoint ---- */

/* The whole job starts again as soon as it has all its nodes. */
static void start_or_wait(struct sim_world *w)
{
	if (!spares_suffice(w, w->lost_count - w->lost_soft)) {
		w->phase = SIM_WAITING;
		w->hopeless = !isfinite(scheme_of(w)->repair_s);
		return;
	}
	lost_fill(w);
	w->phase = SIM_STARTING;
}

static void note_kill(struct sim_world *w, uint32_t group, bool soft)
{
	if (w->phase != SIM_STARTING && w->phase != SIM_WAITING) {
		w->kill_count = 0;
		w->need = POLICY_LOCAL;
	}
	if (soft)
		return;
	if (w->need < POLICY_PARTNER)
		w->need = POLICY_PARTNER;
	for (size_t i = 0; i < w->kill_count; i++)
		if (policy_are_partners(group, w->kills[i], w->setup->groups))
			w->need = POLICY_SHARED;
	if (w->kill_count == w->kill_cap) {
		w->kill_cap = w->kill_cap ? 2 * w->kill_cap : 16;
		w->kills = grown(w, w->kills, w->kill_cap, sizeof(*w->kills));
		if (w->no_memory)
			return;
	}
	w->kills[w->kill_count++] = group;
}

static void roll_back(struct sim_world *w, uint32_t group, bool soft)
{
	const struct sim_plan *plan = w->setup->plan;

	note_kill(w, group, soft);
	enum policy_level level = policy_restore_level(w->saved, w->need);
	double work = 0;
	w->left_s = plan->job.launch_s;
	if (level != POLICY_BEGINNING) {
		work = w->saved[level];
		w->left_s = plan->scheme.level[level].restart_s;
	}
	for (int k = 0; k < (int)w->need; k++)
		w->saved[k] = POLICY_NO_WORK;
	w->figure[SIM_REWORK_S] += w->work_s - work;
	w->figure[SIM_RESTARTS] += w->phase != SIM_WAITING;
	w->work_s = w->aligned_s = work;
	w->stall_s = 0;
	w->faults = 0;
	w->lag_max = w->lag_sum = w->lag_count = 0;
	w->clone_first = w->clone_count = w->clone_paused = 0;
	start_or_wait(w);
}

/* ---- cloning ---- */

static struct sim_cloning *clone_at(const struct sim_world *w, size_t i)
{
	return &w->clones[(w->clone_first + i) % w->clone_cap];
}

static bool clone_note(struct sim_world *w, uint32_t slot)
{
	if (w->clone_count == w->clone_cap) {
		size_t cap = w->clone_cap ? 2 * w->clone_cap : 16;
		w->clones = grown(w, w->clones, cap, sizeof(*w->clones));
		if (w->no_memory)
			return false;
		memcpy(w->clones + w->clone_cap, w->clones, w->clone_first * sizeof(*w->clones));
		w->clone_cap = cap;
	}
	w->clone_count++;
	*clone_at(w, w->clone_count - 1) =
	    (struct sim_cloning){w->now_s + scheme_of(w)->clone_s, slot};
	return true;
}

/* From now on one more cloning stops the job; several stop it only once. */
static void clone_stop_job(struct sim_world *w)
{
	w->clone_paused++;
	w->stall_s = fmax(w->stall_s, scheme_of(w)->clone_pause_s);
}

static bool clone_wanted(const struct sim_world *w)
{
	const struct sim_scheme *s = scheme_of(w);

	return s->cloning && w->phase != SIM_WAITING && w->lost_count > w->clone_count &&
	       (double)w->clone_count < s->at_once;
}

static void clone_start(struct sim_world *w)
{
	const struct sim_scheme *s = scheme_of(w);

	while (clone_wanted(w)) {
		bool spare = spares_suffice(w, 1);
		if (!spare && w->lost_soft == w->clone_count)
			return;
		size_t i = policy_clone_next(w->lost, w->lost_count, spare);
		struct policy_lost *l = &w->lost[i];
		if (!clone_note(w, w->lost_slot[i]))
			return;
		if (l->needs_spare) {
			spare_take(w);
			l->needs_spare = false;
			w->lost_soft++;
		}
		l->in_hand = true;
		if (s->clone_pause_s >= s->clone_s) /* it stands from the very beginning */
			clone_stop_job(w);
	}
}

static void clone_end(struct sim_world *w)
{
	uint32_t slot = clone_at(w, 0)->slot, rank = slot % w->setup->ranks;
	size_t i = 0;

	w->figure[SIM_CLONES]++;
	w->clone_first = (w->clone_first + 1) % w->clone_cap;
	w->clone_count--;
	w->clone_paused--;
	while (w->lost_slot[i] != slot)
		i++;
	lost_remove(w, i);
	for (i = 0; w->down_in[rank] && i < w->lost_count; i++)
		w->lost[i].left += w->lost[i].rank == rank;
	clone_start(w);
}

static double clone_pause_at(const struct sim_world *w)
{
	return w->clone_paused < w->clone_count
		   ? clone_at(w, w->clone_paused)->end_s - scheme_of(w)->clone_pause_s
		   : INFINITY;
}

void sim_react_due(struct sim_world *w)
{
	if (clone_pause_at(w) <= w->now_s) { /* before its end, also if it pauses for no time */
		clone_stop_job(w);
	} else if (w->clone_count && clone_at(w, 0)->end_s <= w->now_s) {
		clone_end(w);
	} else {
		repairs_settle(w);
		if (w->phase == SIM_WAITING)
			start_or_wait(w);
		else
			clone_start(w);
	}
}

double sim_react_next_s(const struct sim_world *w)
{
	double next = w->clone_count ? fmin(clone_at(w, 0)->end_s, clone_pause_at(w)) : INFINITY;

	if (w->repair_count && (w->phase == SIM_WAITING || clone_wanted(w)))
		next = fmin(next, w->repairs[w->repair_first]);
	return next;
}

static void lose_replica(struct sim_world *w, const struct sim_strike *strike)
{
	const struct sim_setup *x = w->setup;
	uint32_t rank = strike->slot % x->ranks;
	uint32_t size = x->slots / x->ranks + (rank < x->slots % x->ranks);
	uint8_t left = (uint8_t)(size - ++w->down_in[rank]);

	for (size_t i = 0; w->down_in[rank] > 1 && i < w->lost_count; i++)
		if (w->lost[i].rank == rank)
			w->lost[i].left = left;
	lost_add(w, strike->slot, (struct policy_lost){rank, left, !strike->soft, false});
	if (left == 0)
		roll_back(w, rank, strike->soft);
	else
		clone_start(w);
}

/* ---- shadows ---- */

double sim_react_lag_s(const struct sim_world *w)
{
	return (1 - w->setup->speed) * (w->work_s - w->aligned_s);
}

/* A shadow takes over. All wait until it has caught up, and the other shadows jump meanwhile. */
static void promote(struct sim_world *w)
{
	const struct sim_scheme *s = scheme_of(w);
	double lag = sim_react_lag_s(w);

	w->figure[SIM_PROMOTIONS]++;
	if (s->loose) {
		w->lag_max = fmax(w->lag_max, lag);
		w->lag_sum += lag;
		w->lag_count++;
		return;
	}
	if (lag <= 0) /* all are level: just after a jump, or while starting */
		return;
	w->stall_s += s->jump ? fmax(lag, s->jump_s) : lag;
	/* without jumps, the others at least use the time to come nearer */
	w->aligned_s =
	    s->jump ? w->work_s : w->aligned_s + w->setup->speed * lag / (1 - w->setup->speed);
	w->aligned_s = fmin(w->aligned_s, w->work_s);
}

static void rejuvenate(struct sim_world *w)
{
	lost_fill(w);
	w->figure[SIM_REJUVENATIONS]++;
	w->faults = 0;
	w->stall_s += scheme_of(w)->rejuvenate_s;
	w->aligned_s = w->work_s;
}

static void lose_in_set(struct sim_world *w, const struct sim_strike *strike)
{
	const struct sim_setup *x = w->setup;
	bool main = strike->slot < x->mains;
	uint32_t set =
	    main ? strike->slot / (uint32_t)scheme_of(w)->set_size : strike->slot - x->mains;
	bool vulnerable = w->down_in[set]++ > 0;

	lost_add(w, strike->slot, (struct policy_lost){set, 1, !strike->soft, false});
	if (vulnerable) {
		roll_back(w, set, strike->soft);
		return;
	}
	if (w->phase == SIM_WAITING)
		return;
	if (main)
		promote(w);
	w->faults++;
	if (policy_rejuvenate(w->faults, (uint32_t)scheme_of(w)->rejuvenate))
		rejuvenate(w);
}

/* ---- all ---- */

void sim_react_failure(struct sim_world *w, const struct sim_strike *strike)
{
	const struct sim_scheme *s = scheme_of(w);

	w->figure[SIM_FAILURES]++;
	if (strike->soft && s->tasks && sim_random_unit(&w->cover) <= s->coverage) {
		w->figure[SIM_COVERED]++;
		if (w->phase != SIM_WAITING)
			w->stall_s += s->rework_s * s->overlap;
		sim_source_renew(&w->source, strike->slot, strike->time_s);
		return;
	}
	if (!strike->soft)
		repair_begin(w, strike->time_s);
	if (s->shadows)
		lose_in_set(w, strike);
	else
		lose_replica(w, strike);
}
