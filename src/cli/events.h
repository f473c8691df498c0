/* SPDX-License-Identifier: BSD-3-Clause */
/* The backplane's commands: what their files share. */
#ifndef HALE_CLI_EVENTS_H
#define HALE_CLI_EVENTS_H

#include <stdbool.h>
#include "job/job.h"

extern const char cli_events_help[], cli_backplane_help[];

struct events_place {
	char job[JOB_ID_MAX]; /* "": no job in particular */
	bool running;	      /* it runs, and HALE_FTB leads to its broker */
	bool own;	      /* which serves this job only */
};

/* Sets HALE_FTB for the broker of a job, or without one, where the machine has no broker, for that
 * of the only job that runs. */
void events_find(const char *job, struct events_place *place);
bool events_job_runs(const struct events_place *place);

#endif
