/* SPDX-License-Identifier: BSD-3-Clause */
/* Which broker `hale events` speaks to: the job's, the machine's, or that of the only job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/events.h"
#include "control/control.h"
#include "head/watch/watch.h"

/* Where a running job says that its events are; false: it does not run, or has none. */
static bool ask_job(char job[JOB_ID_MAX], char path[108])
{
	struct json_value *answer;
	hale_status_t status;
	const char *said;

	control_ask_each((char(*)[JOB_ID_MAX])job, 1, "{\"op\":\"ps\"}", &answer, &status);
	said = status == HALE_OK ? json_text(json_get(answer, "events"), "") : "";
	snprintf(path, 108, "%s", said);
	json_free(answer);
	return path[0];
}

static bool only_job(char job[JOB_ID_MAX])
{
	char(*jobs)[JOB_ID_MAX];
	bool one = control_jobs(&jobs) == 1;

	if (one)
		snprintf(job, JOB_ID_MAX, "%s", jobs[0]);
	free(jobs);
	return one;
}

static void go_to(struct events_place *p)
{
	char path[108];

	if (!ask_job(p->job, path))
		return;
	p->running = true;
	p->own = strncmp(path, "@hale/", 6) == 0;
	setenv("HALE_FTB", path, 1);
}

void events_find(const char *job, struct events_place *p)
{
	*p = (struct events_place){0};
	if (!job)
		return;
	snprintf(p->job, sizeof(p->job), "%s", job);
	go_to(p);
}

int events_connect(const FTB_client_t *me, struct events_place *p, FTB_client_handle_t *client)
{
	const char *named = getenv("HALE_FTB");
	int ret = FTB_Connect(me, client);

	/* who names a broker wants no other one */
	if (ret != FTB_ERR_NETWORK_NO_ROUTE || p->job[0] || (named && *named) || !only_job(p->job))
		return ret;
	go_to(p);
	return p->running ? FTB_Connect(me, client) : ret;
}

bool events_job_runs(const struct events_place *p)
{
	int fd = control_connect(p->job);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}
