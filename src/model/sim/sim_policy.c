/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include "model/interval.h"
#include "model/sim/sim_policy.h"

double policy_checkpoint_due(const double every[POLICY_LEVELS], const double saved[POLICY_LEVELS],
			     enum policy_level *level)
{
	double due = INFINITY, newest = 0;

	*level = POLICY_BEGINNING;
	/* from the top, so that of levels due at once the highest is taken */
	for (int k = POLICY_LEVELS - 1; k >= 0; k--) {
		newest = fmax(newest, saved[k]);
		if (every[k] > 0 && newest + every[k] < due) {
			due = newest + every[k];
			*level = (enum policy_level)k;
		}
	}
	return due;
}

double policy_checkpoint_interval_s(double cost_s, double mtbf_s, double work_s, double floor_s)
{
	double interval = work_s;

	if (!isfinite(mtbf_s) || model_daly_s(cost_s, mtbf_s, &interval, NULL) != HALE_OK)
		return work_s;
	return fmin(fmax(interval, floor_s), work_s);
}

enum policy_level policy_restore_level(const double saved[POLICY_LEVELS],
				       enum policy_level at_least)
{
	enum policy_level best = POLICY_BEGINNING;

	for (int k = at_least; k < POLICY_LEVELS; k++)
		if (saved[k] != POLICY_NO_WORK &&
		    (best == POLICY_BEGINNING || saved[k] > saved[best]))
			best = (enum policy_level)k;
	return best;
}

bool policy_are_partners(uint32_t a, uint32_t b, uint32_t nodes)
{
	uint32_t apart = a > b ? a - b : b - a;

	return apart == 1 || apart == nodes - 1;
}

size_t policy_clone_next(const struct policy_lost *lost, size_t count, bool spare_free)
{
	size_t best = count;

	for (size_t i = 0; i < count; i++) {
		if (lost[i].in_hand || (lost[i].needs_spare && !spare_free))
			continue;
		if (best == count || lost[i].left < lost[best].left)
			best = i;
		if (lost[best].left == 1)
			break;
	}
	return best;
}

double policy_jump_due(double aligned_work, double log_bytes, double mark, double rate,
		       double speed)
{
	double growth = rate * (1 - speed);

	return growth > 0 && isfinite(log_bytes) ? aligned_work + mark * log_bytes / growth
						 : INFINITY;
}

bool policy_rejuvenate(uint32_t faults_since, uint32_t after)
{
	return after > 0 && faults_since >= after;
}
