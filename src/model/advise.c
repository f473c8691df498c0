/* SPDX-License-Identifier: BSD-3-Clause */
/* The schemes: what each is run with, what it costs, in which order. */
#include "model/advise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "model/interval.h"
#include "model/redundancy.h"
#include "model/shadow.h"
#include "model/unified.h"

/* Every 8th incremental checkpoint is a whole one (head/checkpoint/checkpoint.c). */
enum { DRAWS = 400, CHAIN = 8, SHADOWS_MAX = 8 };
/* What takes so many times as long as the work is not worth its figures. */
enum { HOPELESS = 1000 };

/* Numbers that a scheme is worked out with: the best guesses, or drawn ones. */
struct drawn {
	double cost_s, write_s;		  /* of whole checkpoints */
	double step_cost_s, step_write_s; /* of incremental ones, whole ones among them */
	double restart_s, beta;
};

struct question {
	const struct advise_measure *measure;
	const struct advise_machine *machine;
	double mtbf_s; /* of all nodes that the program sees */
};

struct advise_answer {
	double time_s, energy_j, nodes, failures;
};

typedef hale_status_t (*scheme_fn)(const struct question *q, const struct advise_choice *c,
				   const struct drawn *d, struct advise_answer *a,
				   struct error *err);

/* ---- without replicas ---- */

static void settle(const struct question *q, struct advise_answer *a, double nodes)
{
	a->nodes = nodes;
	a->energy_j = nodes * q->machine->node_w * a->time_s;
	a->failures = nodes * a->time_s / q->machine->fails.mean_s;
}

static hale_status_t run_nothing(const struct question *q, const struct advise_choice *c,
				 const struct drawn *d, struct advise_answer *a, struct error *err)
{
	double w = q->machine->work_s, m = q->mtbf_s;

	a->time_s = isinf(m) ? w : (m + d->restart_s) * expm1(w / m);
	settle(q, a, q->machine->nodes);
	return HALE_OK;
}

static hale_status_t run_checkpoints(const struct question *q, const struct advise_choice *c,
				     const struct drawn *d, struct advise_answer *a,
				     struct error *err)
{
	hale_status_t status =
	    advise_checkpointed_s(q->machine->work_s, c->interval_s, d->cost_s, d->write_s,
				  d->restart_s, q->mtbf_s, &a->time_s, err);

	settle(q, a, q->machine->nodes);
	return status;
}

static hale_status_t run_incremental(const struct question *q, const struct advise_choice *c,
				     const struct drawn *d, struct advise_answer *a,
				     struct error *err)
{
	struct drawn steps = *d;

	steps.cost_s = d->step_cost_s;
	steps.write_s = d->step_write_s;
	return run_checkpoints(q, c, &steps, a, err);
}

/* 002 section 7: tasks mend their share of the failures, checkpoints the others. */
static hale_status_t run_tasks(const struct question *q, const struct advise_choice *c,
			       const struct drawn *d, struct advise_answer *a, struct error *err)
{
	const struct advise_machine *k = q->machine;
	struct question others = *q;
	struct advise_machine slower = *k;
	hale_status_t status;

	slower.work_s = k->work_s / (1 - k->task_waste);
	others.machine = &slower;
	others.mtbf_s = q->mtbf_s / (1 - k->coverage);
	status = run_checkpoints(&others, c, d, a, err);
	settle(q, a, k->nodes);
	return status;
}

/* ---- with replicas ---- */

static hale_status_t run_replicas(const struct question *q, const struct drawn *d, double degree,
				  bool cloning, struct advise_answer *a, struct error *err)
{
	const struct advise_machine *k = q->machine;
	struct model_redundancy_result r;
	struct model_redundancy in = {
	    .work_s = k->work_s,
	    .nodes = k->nodes,
	    .degree = degree,
	    .beta = d->beta,
	    .node_mttf_s = k->fails.mean_s,
	    /* an image that goes into a process instead of a file, while its rank stands still */
	    .clone_s = d->write_s,
	    .relaunch_s = d->restart_s,
	    .repair_s = INFINITY,
	    .cloning = cloning,
	    .exact = true};
	hale_status_t status = model_redundancy(&in, &r, err);

	if (status != HALE_OK)
		return status;
	a->time_s = r.total_s;
	settle(q, a, r.nodes_running);
	return HALE_OK;
}

static hale_status_t run_twice(const struct question *q, const struct advise_choice *c,
			       const struct drawn *d, struct advise_answer *a, struct error *err)
{
	return run_replicas(q, d, 2, false, a, err);
}

static hale_status_t run_cloned(const struct question *q, const struct advise_choice *c,
				const struct drawn *d, struct advise_answer *a, struct error *err)
{
	return run_replicas(q, d, 2, true, a, err);
}

static hale_status_t run_thrice(const struct question *q, const struct advise_choice *c,
				const struct drawn *d, struct advise_answer *a, struct error *err)
{
	return run_replicas(q, d, 3, false, a, err);
}

static struct model_partial twice_of(const struct question *q, const struct drawn *d,
				     double restart_s)
{
	const struct advise_machine *k = q->machine;

	return (struct model_partial){.work_s = k->work_s,
				      .nodes = k->nodes,
				      .fraction = 1,
				      .beta = d->beta,
				      .node_mttf_s = k->fails.mean_s,
				      .ckpt_s = d->cost_s,
				      .restart_s = restart_s};
}

/* Every rank twice, and checkpoints for when both are lost. */
static hale_status_t run_twice_saved(const struct question *q, const struct advise_choice *c,
				     const struct drawn *d, struct advise_answer *a,
				     struct error *err)
{
	const struct advise_machine *k = q->machine;
	struct model_partial_result r;
	struct model_partial in = twice_of(q, d, d->restart_s + d->write_s);
	hale_status_t status = model_partial(&in, &r, err);
	double red_s = k->work_s * (1 + d->beta);

	if (status == HALE_OK)
		status = advise_checkpointed_s(red_s, c->interval_s, d->cost_s, d->write_s,
					       d->restart_s, r.mtti_s, &a->time_s, err);
	settle(q, a, 2 * k->nodes);
	return status;
}

static struct model_partial partial_of(const struct question *q, const struct drawn *d,
				       double fraction)
{
	struct model_partial in = twice_of(q, d, d->restart_s + d->write_s);

	in.fraction = fraction;
	return in;
}

/* Some ranks twice: a failure of another one costs a rollback. */
static hale_status_t run_partial(const struct question *q, const struct advise_choice *c,
				 const struct drawn *d, struct advise_answer *a, struct error *err)
{
	const struct advise_machine *k = q->machine;
	struct model_partial_result r;
	struct model_partial in = partial_of(q, d, c->partial);
	hale_status_t status = model_partial(&in, &r, err);
	double red_s = k->work_s * (1 + d->beta * c->partial);

	if (status == HALE_OK)
		status = advise_checkpointed_s(red_s, c->interval_s, d->cost_s, d->write_s,
					       d->restart_s, r.mtti_s, &a->time_s, err);
	settle(q, a, k->nodes * (1 + c->partial));
	return status;
}

static struct model_shadow shadow_of(const struct question *q, double speed)
{
	const struct advise_machine *k = q->machine;

	return (struct model_shadow){.law = k->fails,
				     .work_s = k->work_s,
				     .pairs = k->nodes,
				     .main_speed = 1,
				     .shadow_speed = speed,
				     .after_speed = 1,
				     .static_part = k->static_part,
				     .exponent = 3,
				     .socket_w = k->node_w};
}

static hale_status_t run_shadows(const struct question *q, const struct advise_choice *c,
				 const struct drawn *d, struct advise_answer *a, struct error *err)
{
	struct model_shadow in = shadow_of(q, c->shadow_speed);
	struct model_shadow_result r;
	hale_status_t status = model_shadow(&in, &r, err);

	if (status != HALE_OK)
		return status;
	a->time_s = r.expected_time_s;
	settle(q, a, 2 * q->machine->nodes);
	a->energy_j = r.expected_energy_j;
	return HALE_OK;
}

/* ---- settings ---- */

static void set_interval(struct advise_choice *c, double cost_s, double mtbf_s, double work_s)
{
	double best = 0;
	char text[16];

	if (isinf(mtbf_s) || cost_s <= 0 ||
	    model_best_interval_s(cost_s, mtbf_s, &best, NULL) != HALE_OK || best >= work_s)
		return;
	model_young_s(cost_s, mtbf_s, &c->young_s, NULL);
	model_daly_s(cost_s, mtbf_s, &c->daly_s, NULL);
	/* from one beginning to the next, as --ckpt-every is */
	c->interval_s = advise_round_s(best + cost_s, text);
}

static const char *every(const struct advise_choice *c, char text[32])
{
	char number[16];

	text[0] = '\0';
	if (c->interval_s > 0) {
		advise_round_s(c->interval_s, number);
		snprintf(text, 32, "--ckpt-every %s", number);
	}
	return text;
}

/* Without an interval the best is to take none. */
static bool set_checkpoints(const struct question *q, const struct drawn *d,
			    struct advise_choice *c)
{
	set_interval(c, d->cost_s, q->mtbf_s, q->machine->work_s);
	every(c, c->flags);
	return c->interval_s > 0;
}

static bool set_incremental(const struct question *q, const struct drawn *d,
			    struct advise_choice *c)
{
	char text[32];

	if (!q->measure->incremental.count)
		return false;
	set_interval(c, d->step_cost_s, q->mtbf_s, q->machine->work_s);
	snprintf(c->flags, sizeof(c->flags), "%s --incremental", every(c, text));
	return c->interval_s > 0;
}

static bool set_tasks(const struct question *q, const struct drawn *d, struct advise_choice *c)
{
	char text[32];

	if (!(q->machine->coverage > 0))
		return false;
	set_interval(c, d->cost_s, q->mtbf_s / (1 - q->machine->coverage), q->machine->work_s);
	snprintf(c->flags, sizeof(c->flags), "--tasks %s", every(c, text));
	c->needs[0] = "--tasks";
	return c->interval_s > 0;
}

static bool set_replicas(struct advise_choice *c, int degree, const char *more)
{
	snprintf(c->flags, sizeof(c->flags), "--replicas %d%s", degree, more);
	c->needs[0] = "--replicas";
	return true;
}

static bool set_twice(const struct question *q, const struct drawn *d, struct advise_choice *c)
{
	return set_replicas(c, 2, "");
}

static bool set_cloned(const struct question *q, const struct drawn *d, struct advise_choice *c)
{
	c->needs[1] = "--spares";
	return set_replicas(c, 2, " --spares 1");
}

static bool set_thrice(const struct question *q, const struct drawn *d, struct advise_choice *c)
{
	return set_replicas(c, 3, "");
}

static bool set_twice_saved(const struct question *q, const struct drawn *d,
			    struct advise_choice *c)
{
	const struct advise_machine *k = q->machine;
	struct model_partial_result r;
	struct model_partial in = twice_of(q, d, d->restart_s);
	char text[32], more[40];

	if (isinf(k->fails.mean_s) || model_partial(&in, &r, NULL) != HALE_OK)
		return false;
	set_interval(c, d->cost_s, r.mtti_s, k->work_s * (1 + d->beta));
	snprintf(more, sizeof(more), " %s", every(c, text));
	return set_replicas(c, 2, more) && c->interval_s > 0;
}

/* A quarter of the ranks, a half or three quarters, whichever takes the least of all nodes. */
static bool set_partial(const struct question *q, const struct drawn *d, struct advise_choice *c)
{
	uint32_t ranks = q->measure->ranks, best = 0;
	double least = INFINITY, mtti_s = 0;
	char text[32], more[64];

	for (uint32_t quarter = 1; quarter <= 3; quarter++) {
		uint32_t some = (ranks * quarter + 2) / 4;
		struct model_partial in = partial_of(q, d, ranks ? (double)some / ranks : 0);
		struct model_partial_result r;

		if (some == 0 || some >= ranks || model_partial(&in, &r, NULL) != HALE_OK ||
		    !(r.node_s < least))
			continue;
		least = r.node_s;
		mtti_s = r.mtti_s;
		best = some;
	}
	if (best == 0 || isinf(q->machine->fails.mean_s))
		return false;
	c->partial = (double)best / ranks;
	set_interval(c, d->cost_s, mtti_s, q->machine->work_s * (1 + d->beta * c->partial));
	every(c, text);
	if (best > 1)
		snprintf(more, sizeof(more), ":0-%u %s", best - 1, text);
	else
		snprintf(more, sizeof(more), ":0 %s", text);
	return set_replicas(c, 2, more) && c->interval_s > 0;
}

/* Several shadows on a core share it: as many as make the product of time and energy least. */
static bool set_shadows(const struct question *q, const struct drawn *d, struct advise_choice *c)
{
	double least = INFINITY;
	int best = 0;

	/* hale run refuses more shadows on a core than there are ranks */
	int most = q->measure->ranks ? (int)fmin(SHADOWS_MAX, q->measure->ranks) : SHADOWS_MAX;

	for (int per_core = 2; per_core <= most; per_core++) {
		struct model_shadow in = shadow_of(q, 1.0 / per_core);
		struct model_shadow_result r;
		double product;

		if (model_shadow(&in, &r, NULL) != HALE_OK)
			continue;
		product = r.expected_time_s * r.expected_energy_j;
		if (product < least) {
			least = product;
			best = per_core;
		}
	}
	if (best == 0 || isinf(q->machine->fails.mean_s))
		return false;
	c->shadow_speed = 1.0 / best;
	snprintf(c->flags, sizeof(c->flags), "--shadows %d", best);
	c->needs[0] = "--shadows";
	return true;
}

static bool set_nothing(const struct question *q, const struct drawn *d, struct advise_choice *c)
{
	snprintf(c->flags, sizeof(c->flags), "--ckpt-every off");
	return true;
}

static const struct {
	const char *name;
	bool (*set)(const struct question *q, const struct drawn *d, struct advise_choice *c);
	scheme_fn run;
} schemes[] = {
    {"none", set_nothing, run_nothing},
    {"checkpoints", set_checkpoints, run_checkpoints},
    {"incremental checkpoints", set_incremental, run_incremental},
    {"tasks + checkpoints", set_tasks, run_tasks},
    {"2x", set_twice, run_twice},
    {"2x of some + checkpoints", set_partial, run_partial},
    {"2x + checkpoints", set_twice_saved, run_twice_saved},
    {"2x + clone", set_cloned, run_cloned},
    {"3x", set_thrice, run_thrice},
    {"shadows", set_shadows, run_shadows},
};

/* ---- drawing ---- */

static double uniform(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return ((double)((z ^ z >> 31) >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state)
{
	double u = uniform(state);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * uniform(state));
}

static double draw(const struct advise_known *k, uint64_t *state)
{
	double z, half;

	if (k->source == ADVISE_GIVEN || k->source == ADVISE_UNKNOWN)
		return k->value;
	if (k->source == ADVISE_ASSUMED)
		return k->low + (k->high - k->low) * uniform(state);
	z = normal(state) / 1.959964;
	half = z < 0 ? k->value - k->low : k->high - k->value;
	return fmax(0, k->value + z * half);
}

static void average_steps(struct drawn *d, double cost_s, double write_s)
{
	d->step_cost_s = (d->cost_s + (CHAIN - 1) * cost_s) / CHAIN;
	d->step_write_s = (d->write_s + (CHAIN - 1) * write_s) / CHAIN;
}

static struct drawn best_guess(const struct advise_measure *m)
{
	struct drawn d = {.cost_s = m->full.cost_s.value,
			  .write_s = m->full.write_s.value,
			  .restart_s = m->restart_s.value,
			  .beta = m->beta.value};

	average_steps(&d, m->incremental.cost_s.value, m->incremental.write_s.value);
	return d;
}

static struct drawn draw_all(const struct advise_measure *m, uint64_t *state)
{
	struct drawn d = {.cost_s = draw(&m->full.cost_s, state),
			  .write_s = draw(&m->full.write_s, state),
			  .restart_s = draw(&m->restart_s, state),
			  .beta = fmin(1, draw(&m->beta, state))};

	average_steps(&d, draw(&m->incremental.cost_s, state),
		      draw(&m->incremental.write_s, state));
	return d;
}

/* ---- working out ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void limits(struct advise_range *r, double *values)
{
	qsort(values, DRAWS, sizeof(*values), compare);
	r->low = fmin(r->value, values[DRAWS / 40]);
	r->high = fmax(r->value, values[DRAWS - 1 - DRAWS / 40]);
}

/* Values for which the job never ends count as infinitely long. */
static void work_out_limits(const struct question *q, scheme_fn run, struct advise_choice *c)
{
	double times[DRAWS], energies[DRAWS];
	uint64_t state = 1;

	for (int i = 0; i < DRAWS; i++) {
		struct drawn d = draw_all(q->measure, &state);
		struct advise_answer a = {0};
		bool good = run(q, c, &d, &a, NULL) == HALE_OK && !isnan(a.time_s);

		times[i] = good ? a.time_s : INFINITY;
		energies[i] = good ? a.energy_j : INFINITY;
	}
	limits(&c->time_s, times);
	limits(&c->energy_j, energies);
}

static void work_out(const struct question *q, scheme_fn run, const struct drawn *d,
		     struct advise_choice *c)
{
	const struct advise_machine *k = q->machine;
	struct advise_answer a = {0};
	struct error err = {HALE_OK, ""};

	if (run(q, c, d, &a, &err) != HALE_OK || !(a.time_s < HOPELESS * k->work_s)) {
		c->time_s = c->energy_j = c->loss =
		    (struct advise_range){INFINITY, INFINITY, INFINITY};
		snprintf(c->why, sizeof(c->why), "%.190s",
			 err.text[0] ? err.text : "it would hardly ever end");
		return;
	}
	c->nodes = a.nodes;
	c->failures = a.failures;
	c->time_s.value = a.time_s;
	c->energy_j.value = a.energy_j;
	work_out_limits(q, run, c);
	c->loss =
	    (struct advise_range){c->time_s.value / k->work_s - 1, c->time_s.low / k->work_s - 1,
				  c->time_s.high / k->work_s - 1};
	c->unsure = c->time_s.high - c->time_s.low > 0.1 * c->time_s.value;
	/* shadows slower than mains draw less */
	c->over_power = a.energy_j / a.time_s > k->power_limit_w * (1 + 1e-9);
	if (c->over_power)
		snprintf(c->why, sizeof(c->why), "its %.0f nodes draw more than the power limit",
			 a.nodes);
}

static double rank_of(const struct advise_choice *c, bool by_energy)
{
	double x = by_energy ? c->energy_j.value : c->time_s.value;

	return c->why[0] ? INFINITY : x;
}

static void insert(struct advise_choice *choices, size_t count, bool by_energy)
{
	struct advise_choice c = choices[count];
	size_t i = count;

	while (i > 0 && rank_of(&c, by_energy) < rank_of(&choices[i - 1], by_energy)) {
		choices[i] = choices[i - 1];
		i--;
	}
	choices[i] = c;
}

static hale_status_t check(const struct advise_measure *m, const struct advise_machine *k,
			   struct error *err)
{
	hale_status_t status = model_law_check(&k->fails, err);

	if (status != HALE_OK)
		return status;
	if (!(k->work_s > 0) || !isfinite(k->work_s))
		return error_set(err, HALE_ERR_ARGUMENT, "the work must take some time");
	if (!(k->nodes >= 1) || k->nodes != floor(k->nodes))
		return error_set(err, HALE_ERR_ARGUMENT, "the number of nodes must be 1 or more");
	if (!(k->coverage >= 0 && k->coverage < 1) || !(k->task_waste >= 0 && k->task_waste < 1))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "coverage and task waste are parts, from 0 to below 1");
	if (m->full.count == 0)
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "no whole checkpoint has been measured; let the program take one "
		    "(hale ckpt, or hale run --ckpt-every TIME), or give its cost with "
		    "--ckpt-cost TIME");
	return HALE_OK;
}

hale_status_t advise_choose(const struct advise_measure *m, const struct advise_machine *machine,
			    bool by_energy, struct advise_choice choices[ADVISE_CHOICES_MAX],
			    size_t *count, struct error *err)
{
	struct question q = {.measure = m, .machine = machine};
	struct drawn d = best_guess(m);
	hale_status_t status = check(m, machine, err);

	*count = 0;
	if (status != HALE_OK)
		return status;
	q.mtbf_s = machine->fails.mean_s / machine->nodes;
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		struct advise_choice *c = &choices[*count];

		*c = (struct advise_choice){.name = schemes[i].name};
		if (!schemes[i].set(&q, &d, c))
			continue;
		work_out(&q, schemes[i].run, &d, c);
		insert(choices, *count, by_energy);
		++*count;
	}
	return HALE_OK;
}
