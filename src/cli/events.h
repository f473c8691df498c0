/* SPDX-License-Identifier: BSD-3-Clause */
/* The backplane's commands: what their files share. */
#ifndef HALE_CLI_EVENTS_H
#define HALE_CLI_EVENTS_H

#include <stdbool.h>
#include "node/job.h"
#include <libftb.h>

extern const char cli_events_help[], cli_backplane_help[];

struct events_place {
	char job[JOB_ID_MAX]; /* "": no job in particular */
	bool running;	      /* it runs, and HALE_FTB leads to its broker */
	bool own;	      /* which serves this job only */
};

/* Sets HALE_FTB for the broker of a job, if it runs. job may be NULL: none in particular. */
void events_find(const char *job, struct events_place *place);
/* FTB_Connect; where there is no broker, and no job was named, to that of the only job that runs.
 */
int events_connect(const FTB_client_t *me, struct events_place *place, FTB_client_handle_t *client);
bool events_job_runs(const struct events_place *place);

#endif
