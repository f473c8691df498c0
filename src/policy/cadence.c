/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy/cadence.h"

#include <stddef.h>
#include "model/interval.h"

/* An attempt at least so often. */
#define RETRY_MOST_S 900.0

double cadence_cost_s(const struct cadence_view *v)
{
	double writers = 2.0 * v->ranks, share;

	if (v->cost_s >= 0) {
		double most = v->pause_s + v->writing_s;

		return v->cost_s < v->pause_s ? v->pause_s : v->cost_s > most ? most : v->cost_s;
	}
	/* each rank has a process beside it that writes its image: cores that are not there are
	 * taken from the ranks, half of each at most */
	share = v->cores >= writers ? 0 : (writers - v->cores) / writers;
	return v->pause_s + (share > 0.5 ? 0.5 : share) * v->writing_s;
}

/* All errors so far may have been mended; of all that will come some will not be. */
#define COVERAGE_MOST 0.999

double cadence_coverage(const struct cadence_tasks *t)
{
	double expected = t->exposed_s > 0 ? t->protected_s / t->exposed_s : 0;
	double seen = (double)(t->mended + t->fell);
	double coverage;

	if (expected > 1)
		expected = 1;
	coverage = (expected + (double)t->mended) / (1 + seen);
	return coverage < COVERAGE_MOST ? coverage : COVERAGE_MOST;
}

double cadence_mtbf_s(const struct cadence_view *v)
{
	double assumed = 1 / (1 / CADENCE_JOB_MTBF_S + v->nodes / CADENCE_NODE_MTBF_S);
	double seconds = v->mtbf_s > 0 ? v->mtbf_s : assumed, seen = v->failures;

	/* a failure of any of its nodes is one of the job */
	if (v->mtbf_s <= 0 && v->nodes > 0) {
		seconds += v->past_node_seconds / v->nodes;
		seen += (double)v->past_failures;
	}
	return (seconds + v->run_s) / (1 - v->covered + seen);
}

static void at_least(struct cadence *c, double seconds, cadence_reason_t reason)
{
	if (c->interval_s >= seconds)
		return;
	c->interval_s = seconds;
	c->reason = reason;
}

struct cadence cadence_next(const struct cadence_view *v)
{
	struct cadence c = {.cost_s = cadence_cost_s(v), .mtbf_s = cadence_mtbf_s(v)};

	if (model_daly_s(c.cost_s, c.mtbf_s, &c.interval_s, NULL) != HALE_OK)
		c.interval_s = c.mtbf_s;
	at_least(&c, v->least_s, CADENCE_LEAST);
	at_least(&c, v->writing_s / CADENCE_WRITING - v->writing_s, CADENCE_DISK);
	at_least(&c, c.cost_s / v->overhead - c.cost_s, CADENCE_OVERHEAD);
	return c;
}

double cadence_retry_s(double least_s, uint32_t attempts)
{
	double seconds = least_s;

	while (attempts-- > 1 && seconds < RETRY_MOST_S)
		seconds *= 2;
	return seconds < RETRY_MOST_S ? seconds : RETRY_MOST_S > least_s ? RETRY_MOST_S : least_s;
}
