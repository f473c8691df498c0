/* SPDX-License-Identifier: BSD-3-Clause */
/* Models of the catalog: checkpoint intervals, redundancy, partial redundancy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/check.h"
#include "model/entries.h"
#include "model/model.h"

#define HOUR_S 3600.0

enum {
	INT_CKPT,
	INT_MTBF,
	INT_RATE,
	INT_RESTART,
	INT_COVERAGE,
	INT_TASK,
	INT_WORK,
	INT_EVERY,
	INT_RUNS,
	INT_SEED,
	INT_SHAPE
};
const struct model_key interval_keys[] = {
    {"ckpt", "time that a checkpoint takes from the job", MODEL_TIME_S, NULL, NULL},
    {"mtbf", "mean time between failures of the whole job (or rate=)", MODEL_TIME_S, "", NULL},
    {"rate", "failures of the whole job (or mtbf=)", MODEL_RATE_HZ, "", NULL},
    {"restart", "from a failure to going on", MODEL_TIME_S, "0", NULL},
    {"coverage", "share of failures that tasks recover from by themselves", MODEL_FRACTION, "0",
     NULL},
    {"task", "share of time that the task level costs", MODEL_FRACTION, "0", NULL},
    {"work", "time of the job without failures and protection", MODEL_TIME_S, "", NULL},
    {"every", "this interval instead of the best, for the times", MODEL_TIME_S, "", NULL},
    {"runs", "play the job so often, to see how good the formula is", MODEL_COUNT, "0", NULL},
    {"seed", "of these runs", MODEL_COUNT, "1", NULL},
    {"shape", "of their failures' Weibull law; 1: exponential", MODEL_NUMBER, "1", NULL},
    {NULL, NULL, MODEL_NUMBER, NULL, NULL},
};

static hale_status_t failure_rate(const double *v, double *rate_hz, struct error *err)
{
	if (isnan(v[INT_MTBF]) == isnan(v[INT_RATE]))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "model interval needs either mtbf=6h or rate=4/d");
	if (isnan(v[INT_RATE])) {
		if (check_above_0("the mean time between failures (s)", v[INT_MTBF], err))
			return HALE_ERR_ARGUMENT;
		*rate_hz = 1 / v[INT_MTBF];
	} else {
		*rate_hz = v[INT_RATE];
	}
	return HALE_OK;
}

static hale_status_t interval_play(const double *v, const struct model_unified *u,
				   struct model_answers *out, struct error *err)
{
	struct model_played p;

	if (isnan(v[INT_WORK]))
		return error_set(err, HALE_ERR_ARGUMENT, "runs= needs work= to play");
	if (check_whole("runs", v[INT_RUNS], 2, 1e8, err) ||
	    model_unified_play(u, isnan(v[INT_EVERY]) ? 0 : v[INT_EVERY], v[INT_SHAPE],
			       (uint32_t)v[INT_RUNS], (uint64_t)v[INT_SEED], &p, err))
		return HALE_ERR_ARGUMENT;
	answer(out, "played_mean_s", MODEL_TIME_S, p.mean_s, 1,
	       "time of the job, mean of the runs");
	answer(out, "played_low_s", MODEL_TIME_S, p.mean_s - p.half_width_s, 1,
	       "95 % confidence interval of it, from");
	answer(out, "played_high_s", MODEL_TIME_S, p.mean_s + p.half_width_s, 1, "to");
	answer(out, "played_difference", MODEL_FRACTION, p.difference, 1,
	       "(mean - formula) / formula");
	answer(out, "played_failures", MODEL_NUMBER, p.failures, 1, "rollbacks of a run, mean");
	return HALE_OK;
}

SOLVER(interval_solve)
{
	struct model_unified u = {.ckpt_s = v[INT_CKPT],
				  .restart_s = v[INT_RESTART],
				  .coverage = v[INT_COVERAGE],
				  .task_waste = v[INT_TASK],
				  .work_s = isnan(v[INT_WORK]) ? 0 : v[INT_WORK]};
	struct model_unified_result r;
	double young_s, daly_s, best_s, mtbf_s;

	if (failure_rate(v, &u.due_rate_hz, err) || model_unified(&u, &r, err))
		return HALE_ERR_ARGUMENT;
	mtbf_s = 1 / u.due_rate_hz;
	if (model_young_s(u.ckpt_s, mtbf_s, &young_s, err) ||
	    model_daly_s(u.ckpt_s, mtbf_s, &daly_s, err) ||
	    model_best_interval_s(u.ckpt_s, mtbf_s, &best_s, err))
		return HALE_ERR_ARGUMENT;
	answer(out, "young_s", MODEL_TIME_S, young_s, 1, "best interval by Young");
	answer(out, "daly_s", MODEL_TIME_S, daly_s, 1, "best interval by Daly, higher order");
	answer(out, "best_s", MODEL_TIME_S, best_s, 1, "best interval of Daly's wall time, exact");
	answer(out, "unified_s", MODEL_TIME_S, r.unified_interval_s, 1,
	       "best interval when tasks recover from their share");
	answer(out, "system_waste", MODEL_FRACTION, r.system_waste, 1,
	       "share of time lost with checkpoints only");
	answer(out, "unified_waste", MODEL_FRACTION, r.unified_waste, 1,
	       "share of time lost with both");
	answer(out, "score", MODEL_NUMBER, r.score, 1,
	       "gain by the task level: the first less the second");
	answer(out, "break_even_hz", MODEL_RATE_HZ, r.break_even_hz, 1,
	       "rate of failures from which there is a gain");
	if (u.work_s > 0) {
		double wall_s, every_s = isnan(v[INT_EVERY]) ? daly_s : v[INT_EVERY];

		answer(out, "system_total_s", MODEL_TIME_S, r.system_total_s, 1,
		       "time of the job with checkpoints only");
		answer(out, "unified_total_s", MODEL_TIME_S, r.unified_total_s, 1,
		       "time of the job with both");
		every_s = fmin(every_s, u.work_s);
		if (u.ckpt_s > 0 || !isnan(v[INT_EVERY])) {
			if (model_daly_wall_s(u.work_s, every_s, u.ckpt_s, u.restart_s, mtbf_s,
					      &wall_s, err))
				return HALE_ERR_ARGUMENT;
			answer(out, "daly_wall_s", MODEL_TIME_S, wall_s, 1,
			       "time with checkpoints only, by Daly's formula");
		}
	}
	return v[INT_RUNS] > 0 ? interval_play(v, &u, out, err) : HALE_OK;
}

enum {
	RED_NODES,
	RED_MTTF,
	RED_T,
	RED_BETA,
	RED_ALPHA,
	RED_FSEND,
	RED_FRECV,
	RED_CLONE,
	RED_RELAUNCH,
	RED_MTTR,
	RED_FORM
};
const struct model_key redundancy_keys[] = {
    {"nodes", "nodes that the program sees; replicas come on top", MODEL_COUNT, NULL, NULL},
    {"mttf", "mean time to failure of a node", MODEL_TIME_S, NULL, NULL},
    {"t", "time of the program without replicas and failures", MODEL_TIME_S, NULL, NULL},
    {"beta", "share of time that each further replica costs once more", MODEL_FRACTION, "", NULL},
    {"alpha", "or: share of time in MPI", MODEL_FRACTION, "", NULL},
    {"fsend", "and of that in sends", MODEL_FRACTION, "", NULL},
    {"frecv", "and in receives", MODEL_FRACTION, "", NULL},
    {"clone", "time that cloning a rank takes from the job", MODEL_TIME_S, "2min", NULL},
    {"relaunch", "time to start the job again", MODEL_TIME_S, "2min", NULL},
    {"mttr", "mean time to repair a node; never: not while the job runs", MODEL_TIME_S, "never",
     NULL},
    {"form", "as published, or without its approximations", MODEL_NUMBER, "published",
     "published,exact"},
    {NULL, NULL, MODEL_NUMBER, NULL, NULL},
};

static hale_status_t redundancy_in(const double *v, const char *scheme, struct model_redundancy *in,
				   struct error *err)
{
	char *end = NULL;
	double degree = scheme[0] >= '1' && scheme[0] <= '9' ? strtod(scheme, &end) : 0, beta;

	if (!end || degree == 0 || *end != 'x' || (end[1] && strcmp(end + 1, "D") != 0))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "'%.40s' is no scheme of redundancy; 2x, 3x and with cloning 2xD "
				 "are",
				 scheme);
	if (!isnan(v[RED_BETA]))
		beta = v[RED_BETA];
	else if (isnan(v[RED_ALPHA]) || isnan(v[RED_FSEND]) || isnan(v[RED_FRECV]))
		return error_set(err, HALE_ERR_ARGUMENT,
				 "model redundancy needs beta=, or alpha=, fsend= and frecv=; "
				 "`hale model communication` gives them");
	else if (model_beta(v[RED_ALPHA], v[RED_FSEND], v[RED_FRECV], &beta, err))
		return HALE_ERR_ARGUMENT;
	*in = (struct model_redundancy){.work_s = v[RED_T],
					.nodes = v[RED_NODES],
					.degree = degree,
					.beta = beta,
					.node_mttf_s = v[RED_MTTF],
					.clone_s = v[RED_CLONE],
					.relaunch_s = v[RED_RELAUNCH],
					.repair_s = v[RED_MTTR],
					.cloning = end[1] == 'D',
					.exact = v[RED_FORM] == 1};
	return HALE_OK;
}

SOLVER(redundancy_solve)
{
	struct model_redundancy in = {0};
	struct model_redundancy_result r;
	double spares = 0, window_s;

	if (redundancy_in(v, scheme, &in, err) || model_redundancy(&in, &r, err))
		return HALE_ERR_ARGUMENT;
	answer(out, "t_red_hours", MODEL_TIME_S, r.red_s / HOUR_S, HOUR_S,
	       "expected time without failures");
	answer(out, "t_total_hours", MODEL_TIME_S, r.total_s / HOUR_S, HOUR_S,
	       "expected time with failures");
	answer(out, "overhead", MODEL_FRACTION, r.total_s / in.work_s - 1, 1,
	       "part by which the program takes longer");
	answer(out, "failures", MODEL_NUMBER, r.failures, 1, "nodes that fail meanwhile");
	answer(out, "spare_nodes", MODEL_COUNT, r.spare_nodes, 1, "spare nodes, on average");
	window_s = fmin(in.repair_s, in.cloning ? r.total_s : fmax(0, r.total_s - r.red_s));
	if (model_spares_for(window_s * r.nodes_running / in.node_mttf_s, 0.99, &spares, NULL))
		spares = INFINITY;
	answer(out, "spare_nodes_99", MODEL_COUNT, spares, 1, "to lack none, with 99 %");
	answer(out, "reliability", MODEL_NUMBER, r.reliability, 1,
	       "probability that no rank loses all its replicas");
	answer(out, "nodes_running", MODEL_COUNT, r.nodes_running, 1, "nodes with replicas");
	answer(out, "node_hours", MODEL_NUMBER, r.node_s / HOUR_S, 1, "node-hours used");
	return HALE_OK;
}

CROSSING(redundancy_cross)
{
	struct model_redundancy x, y;

	if (redundancy_in(v, a, &x, err) || redundancy_in(v, b, &y, err))
		return HALE_ERR_ARGUMENT;
	return model_redundancy_crossing(&x, &y, 1, 1e8, at, err);
}

enum { PART_NODES, PART_MTTF, PART_T, PART_CKPT, PART_RESTART, PART_FRACTION, PART_BETA };
const struct model_key partial_keys[] = {
    {"nodes", "nodes that the program sees; replicas come on top", MODEL_COUNT, NULL, NULL},
    {"mttf", "mean time to failure of a node", MODEL_TIME_S, NULL, NULL},
    {"t", "time of the program without replicas, checkpoints and failures", MODEL_TIME_S, NULL,
     NULL},
    {"ckpt", "time that a checkpoint takes", MODEL_TIME_S, NULL, NULL},
    {"restart", "from a failure to going on", MODEL_TIME_S, NULL, NULL},
    {"fraction", "of the ranks that have a replica", MODEL_FRACTION, "1", NULL},
    {"beta", "what full redundancy costs in time", MODEL_FRACTION, "0", NULL},
    {NULL, NULL, MODEL_NUMBER, NULL, NULL},
};

SOLVER(partial_solve)
{
	struct model_partial in = {.work_s = v[PART_T],
				   .nodes = v[PART_NODES],
				   .fraction = v[PART_FRACTION],
				   .beta = v[PART_BETA],
				   .node_mttf_s = v[PART_MTTF],
				   .ckpt_s = v[PART_CKPT],
				   .restart_s = v[PART_RESTART]};
	struct model_partial_result r;

	if (model_partial(&in, &r, err))
		return HALE_ERR_ARGUMENT;
	answer(out, "t_total_hours", MODEL_TIME_S, r.total_s / HOUR_S, HOUR_S, "expected time");
	answer(out, "mtti_hours", MODEL_TIME_S, r.mtti_s / HOUR_S, HOUR_S,
	       "mean time to an interrupt of the job");
	answer(out, "interval_s", MODEL_TIME_S, r.interval_s, 1, "checkpoint interval, by Daly");
	answer(out, "node_hours", MODEL_NUMBER, r.node_s / HOUR_S, 1, "node-hours used");
	return HALE_OK;
}
