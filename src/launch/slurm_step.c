/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/slurm_step.h"

#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "node/job.h"

/* salloc's shell may be a step of its own, too (LaunchParameters=use_interactive_step): those have
 * the highest numbers. */
bool slurm_in_step(void)
{
	const char *step = getenv("SLURM_STEP_ID");
	long number;

	return step && !units_parse_int(step, 0xfffffff0l, 0xffffffffl, &number);
}

long slurm_step_tasks(void)
{
	const char *text = getenv("SLURM_STEP_NUM_TASKS");
	long tasks;

	return slurm_in_step() && text && units_parse_int(text, 2, JOB_RANKS_MAX, &tasks) ? tasks
											  : 0;
}

bool slurm_step_first(void)
{
	const char *task = getenv("SLURM_PROCID");

	return !task || strcmp(task, "0") == 0;
}

/* One part of the text: how often it holds, and where the next one begins. */
static bool slurm_step_part(const char **text, unsigned long *slots, unsigned long *times)
{
	char *end;

	*slots = strtoul(*text, &end, 10);
	*times = 1;
	if (end == *text)
		return false;
	if (strncmp(end, "(x", 2) == 0) {
		*times = strtoul(end + 2, &end, 10);
		if (*end != ')')
			return false;
		end++;
	}
	*text = *end == ',' ? end + 1 : end;
	return *end == ',' || *end == '\0';
}

bool slurm_step_slots(struct hosts *h, const char *text)
{
	unsigned long slots, times;
	uint32_t k = 0;

	while (*text) {
		if (!slurm_step_part(&text, &slots, &times) || slots > JOB_RANKS_MAX ||
		    times > h->count - k)
			return false;
		while (times-- > 0)
			h->at[k++].slots = (uint32_t)slots;
	}
	return k == h->count;
}
