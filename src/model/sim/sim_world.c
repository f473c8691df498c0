/* SPDX-License-Identifier: BSD-3-Clause */
/* One run: time goes from event to event. An event is the end of what the job is doing, a failure,
 * the progress of a clone, or a repair that somebody waits for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/sim/sim_world.h"

enum { PURPOSE_COVER = 3 };

bool sim_world_init(struct sim_world *w, const struct sim_setup *setup)
{
	const struct sim_plan *plan = setup->plan;
	bool ideal = plan->scheme.shadows && plan->scheme.ideal;

	*w = (struct sim_world){.setup = setup};
	w->down_in = calloc(setup->groups, 1);
	bool source = sim_source_init(&w->source, &plan->failures,
				      ideal ? setup->mains : setup->slots, setup->limit_s);
	return w->down_in && source;
}

void sim_world_fini(struct sim_world *w)
{
	sim_source_fini(&w->source);
	free(w->down_in);
	free(w->lost_base);
	free(w->lost_slot_base);
	free(w->kills);
	free(w->clones);
	free(w->repairs);
}

static void start(struct sim_world *w, uint32_t run)
{
	const struct sim_plan *plan = w->setup->plan;

	for (size_t i = 0; i < w->lost_count; i++)
		w->down_in[w->lost[i].rank] = 0;
	w->lost_count = w->lost_soft = w->lost_first = 0;
	w->lost = w->lost_base;
	w->lost_slot = w->lost_slot_base;
	w->repair_first = w->repair_count = 0;
	w->replaced = w->repaired = 0;
	w->now_s = w->left_s = w->stall_s = w->work_s = 0;
	w->aligned_s = 0;
	w->faults = w->lag_count = 0;
	w->lag_max = w->lag_sum = 0;
	w->clone_first = w->clone_count = w->clone_paused = 0;
	w->hopeless = false;
	w->phase = SIM_WORKING;
	for (int k = 0; k < POLICY_LEVELS; k++)
		w->saved[k] = POLICY_NO_WORK;
	memset(w->figure, 0, sizeof(w->figure));
	sim_random_init(&w->cover, plan->seed, run, PURPOSE_COVER);
	sim_source_start(&w->source, plan->seed, run);
}

/* What the job works towards. */
static void aim(struct sim_world *w)
{
	const struct sim_setup *x = w->setup;
	const struct sim_scheme *s = &x->plan->scheme;
	double ckpt = policy_checkpoint_due(x->every_s, w->saved, &w->level);
	double jump = INFINITY;

	if (s->shadows && s->jump)
		jump =
		    policy_jump_due(w->aligned_s, s->log_bytes, s->log_mark, s->log_rate, x->speed);
	w->aim = SIM_AIM_END;
	w->aim_work_s = x->work_s;
	if (ckpt < w->aim_work_s) {
		w->aim = SIM_AIM_CKPT;
		w->aim_work_s = ckpt;
	}
	if (jump < w->aim_work_s) {
		w->aim = SIM_AIM_JUMP;
		w->aim_work_s = jump;
	}
	w->left_s = fmax(w->aim_work_s - w->work_s, 0);
}

/* What the job draws, in sockets at full speed. */
static double power(const struct sim_world *w, bool stalled)
{
	const struct sim_setup *x = w->setup;
	const struct sim_job *job = &x->plan->job;
	const struct sim_scheme *s = &x->plan->scheme;
	double up = (double)x->slots - (double)w->lost_count;
	double idle = job->static_part;

	double spares = isfinite(s->spares) ? fmax(s->spares + w->repaired - w->replaced, 0) : 0;
	spares *= idle;
	if (w->phase == SIM_SAVING || w->phase == SIM_STARTING)
		return spares + up * (1 + job->io_part);
	if (w->phase == SIM_WAITING)
		return spares + up * idle;
	if (!stalled)
		return spares + (s->shadows ? x->mains + (up - x->mains) * x->shadow_draw : up);
	/* with shadows, one of them catches up while the rest waits */
	return spares + (s->shadows ? 1 + (up - 1) * idle : up * idle);
}

static void advance(struct sim_world *w, double dt)
{
	double stalled = fmin(dt, w->stall_s), rest = dt - stalled;
	double joules = 0;

	w->now_s += dt;
	if (stalled > 0) {
		w->stall_s -= stalled;
		w->figure[SIM_STALL_S] += stalled;
		joules += stalled * power(w, true);
	}
	if (rest > 0)
		joules += rest * power(w, false);
	w->figure[SIM_ENERGY_J] += joules * w->setup->plan->job.socket_w;
	switch (w->phase) {
	case SIM_WORKING:
		w->work_s += rest;
		w->left_s -= rest;
		break;
	case SIM_SAVING:
		w->figure[SIM_CKPT_S] += rest;
		w->left_s -= rest;
		break;
	case SIM_STARTING:
		w->figure[SIM_RESTART_S] += rest;
		w->left_s -= rest;
		break;
	case SIM_WAITING:
		w->figure[SIM_WAIT_S] += rest;
		break;
	}
}

/* True when the job is done. */
static bool phase_end(struct sim_world *w)
{
	const struct sim_scheme *s = &w->setup->plan->scheme;

	w->left_s = 0;
	switch (w->phase) {
	case SIM_WORKING:
		w->work_s = w->aim_work_s;
		if (w->aim == SIM_AIM_END)
			return true;
		if (w->aim == SIM_AIM_CKPT) {
			w->phase = SIM_SAVING;
			w->left_s = s->level[w->level].cost_s;
			break;
		}
		w->figure[SIM_JUMPS]++;
		w->stall_s += s->jump_s;
		w->aligned_s = w->work_s;
		break;
	case SIM_SAVING:
		w->saved[w->level] = w->work_s;
		w->figure[SIM_CKPTS]++;
		w->phase = SIM_WORKING;
		break;
	case SIM_STARTING:
		w->phase = SIM_WORKING;
		break;
	case SIM_WAITING:
		break;
	}
	return false;
}

static void record(struct sim_record *r, const struct sim_strike *strike)
{
	if (r->count == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 1024;
		struct sim_trace_event *more = realloc(r->events, cap * sizeof(*more));
		if (!more) {
			r->failed = true;
			return;
		}
		r->events = more;
		r->cap = cap;
	}
	r->events[r->count++] =
	    (struct sim_trace_event){strike->time_s, strike->slot, strike->soft};
}

/* Shadows of loose jobs that took over run on after all others; these wait for the last. */
static void loose_end(struct sim_world *w)
{
	const struct sim_setup *x = w->setup;
	const struct sim_job *job = &x->plan->job;
	double alone = w->lag_count;
	double idle = (x->mains - alone) * 2 * w->lag_max + alone * w->lag_max - w->lag_sum;

	w->now_s += w->lag_max;
	w->figure[SIM_STALL_S] += w->lag_max;
	w->figure[SIM_ENERGY_J] += job->socket_w * (w->lag_sum + job->static_part * idle);
}

/* From the next moment at which something happens to after it; true when the job is done. */
static bool step(struct sim_world *w)
{
	double phase = w->phase == SIM_WAITING ? INFINITY : w->now_s + w->stall_s + w->left_s;
	double other = sim_react_next_s(w), failure = sim_source_next_s(&w->source);
	double next = fmin(phase, fmin(other, failure));

	if (next > w->setup->limit_s) {
		advance(w, fmax(w->setup->limit_s - w->now_s, 0));
		w->hopeless = true;
		return false;
	}
	advance(w, fmax(next - w->now_s, 0));
	w->now_s = next; /* exactly: clocks are compared with it */
	if (next == phase) {
		w->stall_s = 0;
		if (phase_end(w))
			return true;
	} else if (next == other) {
		sim_react_due(w);
	} else {
		struct sim_strike strike;
		if (!sim_source_take(&w->source, &strike))
			return false;
		if (w->record)
			record(w->record, &strike);
		sim_react_failure(w, &strike);
	}
	if (w->phase == SIM_WORKING)
		aim(w);
	return false;
}

bool sim_world_play(struct sim_world *w, uint32_t run, struct sim_record *rec)
{
	bool done = false;

	start(w, run);
	w->record = rec;
	aim(w);
	while (!done && !w->hopeless && !w->no_memory && !w->source.no_memory)
		done = step(w);
	w->no_memory |= w->source.no_memory;
	if (done && w->lag_count)
		loose_end(w);
	w->figure[SIM_WALL_S] = w->now_s;
	w->figure[SIM_WORK_S] = w->work_s;
	return done;
}
