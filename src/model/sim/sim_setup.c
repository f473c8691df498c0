/* SPDX-License-Identifier: BSD-3-Clause */
/* What a plan comes down to. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "model/sim/sim_world.h"

void sim_plan_init(struct sim_plan *plan)
{
	*plan = (struct sim_plan){
	    .job = {.nodes = 1,
		    .work_s = 86400,
		    .launch_s = 120,
		    .socket_w = 200,
		    .static_part = 0.6,
		    .io_part = 0,
		    .exponent = 3},
	    .failures = {.law = {.mean_s = 50 * 365.25 * 86400, .shape = 1}},
	    .runs = 100,
	    .threads = 1,
	    .seed = 1,
	    .limit = 100,
	};
	sim_scheme_parse("none", &plan->scheme, NULL);
}

void sim_plan_fini(struct sim_plan *plan)
{
	sim_trace_fini(&plan->failures.trace);
}

static hale_status_t check_job(const struct sim_job *job, struct error *err)
{
	if (!(job->nodes >= 1 && job->nodes <= 1e9) || job->nodes != floor(job->nodes))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the number of nodes is between 1 and 1,000,000,000");
	if (!(job->work_s > 0 && isfinite(job->work_s)))
		return error_set(err, HALE_ERR_ARGUMENT, "a job has some work to do: --days 30");
	if (!(job->beta >= 0 && job->beta <= 1))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "beta is a share of the time, from 0 to 1");
	if (!(job->static_part >= 0 && job->static_part <= 1))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "static power is a share of the whole, from 0 to 1");
	return HALE_OK;
}

static double slots_of(const struct sim_plan *plan)
{
	const struct sim_scheme *s = &plan->scheme;

	if (s->shadows)
		return plan->job.nodes + ceil(plan->job.nodes / s->set_size);
	return round(plan->job.nodes * s->degree);
}

hale_status_t sim_plan_check(const struct sim_plan *plan, struct error *err)
{
	const struct sim_scheme *s = &plan->scheme;
	const struct sim_failures *f = &plan->failures;
	hale_status_t status = check_job(&plan->job, err);

	if (status != HALE_OK)
		return status;
	if (plan->runs < 1 || plan->threads < 1)
		return error_set(err, HALE_ERR_ARGUMENT, "at least one run and one thread");
	if (!(plan->limit >= 1 && plan->limit <= 1e6))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "a job that takes --limit times its work is given up: 1 to 1e6");
	if (slots_of(plan) > 2e9)
		return error_set(err, HALE_ERR_ARGUMENT, "more than 2,000,000,000 nodes in all");
	if (s->shadows && s->set_size > plan->job.nodes)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "a shadowed set of %g is more than the job's %g nodes",
				 s->set_size, plan->job.nodes);
	if (s->level[POLICY_PARTNER].used && plan->job.nodes < 2)
		return error_set(err, HALE_ERR_ARGUMENT, "a single node has no partner for L2");
	if (!(f->soft >= 0 && f->soft <= 1))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "soft is a share of the failures, from 0 to 1");
	if (f->traced && f->trace.count == 0)
		return error_set(err, HALE_ERR_ARGUMENT, "the trace has no failures");
	if (f->traced && f->random_start && !(f->trace.span_s > 0))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "a trace that spans no time can't be entered at random");
	if (s->tasks && !f->traced && f->soft == 0)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "tasks recover from errors that leave the node intact, and there "
				 "are none: say soft=SHARE in --failures, soft=100%% for errors "
				 "only");
	for (int k = 0; k < POLICY_LEVELS; k++)
		if (s->level[k].used && s->level[k].every_s == 0 && s->level[k].cost_s == 0)
			return error_set(err, HALE_ERR_ARGUMENT,
					 "checkpoints that cost nothing have no best interval; "
					 "say every=TIME");
	return HALE_OK;
}

/* ---- the mean time between failures that checkpoints must make good ---- */

/* P that one slot fails within t of the start. A trace counts as exponential. */
static double failed_by(const struct sim_plan *plan, double mean_rate_hz, double t)
{
	const struct sim_failures *f = &plan->failures;

	if (f->traced)
		return -expm1(-mean_rate_hz * t);
	double scale = model_law_scale_s(&f->law), k = f->law.shape;
	return -expm1(pow(f->age_s / scale, k) - pow((f->age_s + t) / scale, k));
}

/* Failures per slot and second, on average over the length of the job. */
static double mean_rate(const struct sim_plan *plan)
{
	const struct sim_failures *f = &plan->failures;
	double t = plan->job.work_s;

	if (f->traced) {
		size_t mine = 0;
		for (size_t i = 0; i < f->trace.count; i++)
			mine += f->trace.events[i].node < slots_of(plan);
		return f->trace.span_s > 0 ? (double)mine / f->trace.span_s / slots_of(plan) : 0;
	}
	if (!isfinite(f->law.mean_s))
		return 0;
	double scale = model_law_scale_s(&f->law), k = f->law.shape;
	return (pow((f->age_s + t) / scale, k) - pow(f->age_s / scale, k)) / t;
}

/* ln P(no group is lost within a time in which a slot fails with probability p). */
static double log_survival(const struct sim_plan *plan, double p)
{
	const struct sim_scheme *s = &plan->scheme;
	double n = plan->job.nodes;

	if (p >= 1)
		return -INFINITY;
	if (s->shadows) { /* of a set's mains and its core at most one */
		double q = log1p(-p), m = s->set_size;
		return n / m * (m * q + log1p((m + 1) * p - p));
	}
	double whole = floor(s->degree), more = s->degree - whole;
	return n * ((1 - more) * log1p(-pow(p, whole)) + more * log1p(-pow(p, whole + 1)));
}

/* Mean time to the loss of a group if nothing is mended meanwhile: the integral of the survival
 * function, over a range beyond which nothing is left of it. */
static double mean_time_to_loss(const struct sim_plan *plan, double rate)
{
	double high = 1, sum = 0, last = 1;
	enum { STEPS = 4000 };

	while (log_survival(plan, failed_by(plan, rate, high)) > -40 && high < 1e15)
		high *= 1.5;
	for (int i = 1; i <= STEPS; i++) {
		double now = exp(log_survival(plan, failed_by(plan, rate, high * i / STEPS)));
		sum += (last + now) / 2 * high / STEPS;
		last = now;
	}
	return sum;
}

/* Share of failures that leave the node intact. */
static double soft_share(const struct sim_failures *f)
{
	size_t soft = 0;

	if (!f->traced)
		return f->soft;
	for (size_t i = 0; i < f->trace.count; i++)
		soft += f->trace.events[i].soft;
	return (double)soft / (double)f->trace.count;
}

/* Losses of whole groups per second, all nodes failing at that rate. */
static double loss_rate(const struct sim_plan *plan, double rate)
{
	const struct sim_scheme *s = &plan->scheme;
	double all = rate * slots_of(plan);

	if (s->degree == 1 && !s->shadows)
		return all;
	if (s->cloning) /* the others of the rank die while one is cloned */
		return all * pow(rate * s->clone_s, floor(s->degree) - 1);
	if (s->shadows && s->rejuvenate > 0) {
		double window = s->rejuvenate / all;
		return -log_survival(plan, rate * window) / window;
	}
	return 1 / mean_time_to_loss(plan, rate);
}

double sim_mtbf_s(const struct sim_plan *plan, enum policy_level level)
{
	const struct sim_scheme *s = &plan->scheme;
	double rate = mean_rate(plan), soft = soft_share(&plan->failures);
	double covered = s->tasks ? soft * s->coverage : 0;

	if (rate <= 0 || covered >= 1)
		return INFINITY;
	double losses = loss_rate(plan, rate * (1 - covered));
	soft = (soft - covered) / (1 - covered);
	if (level == POLICY_LOCAL) /* it mends nothing else */
		losses *= soft;
	else if (s->level[POLICY_LOCAL].used)
		losses *= 1 - soft;
	if (level == POLICY_SHARED && s->level[POLICY_PARTNER].used) /* a neighbour meanwhile */
		losses *=
		    -expm1(-2 * losses / plan->job.nodes * s->level[POLICY_PARTNER].restart_s);
	return losses > 0 ? 1 / losses : INFINITY;
}

void sim_setup_init(struct sim_setup *x, const struct sim_plan *plan)
{
	const struct sim_scheme *s = &plan->scheme;
	const struct sim_job *job = &plan->job;

	*x = (struct sim_setup){.plan = plan};
	x->ranks = x->mains = (uint32_t)job->nodes;
	x->slots = (uint32_t)slots_of(plan);
	x->groups = s->shadows ? x->slots - x->mains : x->ranks;
	x->work_s = job->work_s * (1 + job->beta * (s->degree - 1));
	if (s->tasks)
		x->work_s /= 1 - s->task_waste;
	x->limit_s = job->work_s * plan->limit;
	x->speed = s->speed >= 0 ? s->speed : pow(s->set_size, -s->pressure);
	/* a core that shadows share is busy all the time */
	x->shadow_draw = s->set_size > 1 ? 1
					 : job->static_part + (1 - job->static_part) *
								  pow(x->speed, job->exponent);
	for (int k = 0; k < POLICY_LEVELS; k++) {
		const struct sim_level *l = &s->level[k];
		if (!l->used)
			continue;
		x->every_s[k] = l->every_s > 0
				    ? l->every_s
				    : policy_checkpoint_interval_s(
					  l->cost_s, sim_mtbf_s(plan, (enum policy_level)k),
					  x->work_s, x->work_s * 1e-6);
	}
}
