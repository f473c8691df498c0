/* SPDX-License-Identifier: BSD-3-Clause */
/* hale attach: a new head for a job whose head is gone. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "agent/agent.h"
#include "cli/cli.h"
#include "cli/tasks.h"
#include "control/control.h"
#include "node/job.h"
#include "head/output/output_daemon.h"
#include "head/failover/takeover.h"
#include "head/head.h"
#include "wire/attach/head_record.h"

static int usage(const char *what)
{
	log_warn("%s; `hale help attach` says how", what);
	return EXIT_USAGE;
}

int cli_attach_node(const char *name)
{
	const char *dot = strchr(name, '.');
	char tag[ATTACH_TAG];

	if (!dot || dot - name >= ATTACH_TAG)
		return usage("hale agent is started by hale attach");
	snprintf(tag, sizeof(tag), "%.*s", (int)(dot - name), name);
	return attach_pass_on(tag, (uint32_t)strtoul(dot + 1, NULL, 10));
}

/* A name, or a folder. False: there is none. */
static bool find_folder(const char *what, char folder[PATH_MAX], bool *headless)
{
	char path[PATH_MAX], found[PATH_MAX];
	struct stat st;

	*headless = false;
	if (!strchr(what, '/') && strlen(what) < JOB_ID_MAX &&
	    output_daemon_find(what, found, headless))
		return realpath(found, folder) != NULL;
	snprintf(path, sizeof(path), "%s%.1024s", strchr(what, '/') ? "" : "hale-ckpt/", what);
	return realpath(path, folder) && stat(folder, &st) == 0 && S_ISDIR(st.st_mode) &&
	       strcmp(folder, "/") != 0;
}

typedef enum headship { HEAD, NO_HEAD, NO_ANSWER } headship_t;

/* NO_ANSWER: it stands still, or the job has just ended. */
static headship_t headship(const char *job, int64_t *pid)
{
	char jobs[1][JOB_ID_MAX];
	struct json_value *answer = NULL;
	hale_status_t status;
	bool headless;

	snprintf(jobs[0], sizeof(jobs[0]), "%s", job);
	control_ask_each(jobs, 1, "{\"op\":\"ps\"}", &answer, &status);
	headless = strcmp(json_text(json_get(answer, "state"), ""), "headless") == 0;
	*pid = json_number_int(json_get(answer, "pid"), 0);
	json_free(answer);
	if (status != HALE_OK)
		return NO_ANSWER;
	return headless ? NO_HEAD : HEAD;
}

static bool only_headless(char job[JOB_ID_MAX])
{
	char(*jobs)[JOB_ID_MAX];
	size_t count = control_jobs(&jobs), found = 0;
	int64_t pid;

	for (size_t i = 0; i < count; i++)
		if (headship(jobs[i], &pid) == NO_HEAD && found++ == 0)
			snprintf(job, JOB_ID_MAX, "%s", jobs[i]);
	free(jobs);
	return found == 1;
}

/* Runs the job until it is over or another head has it. If it is over, gathers what its tasks have
 * to report, as `hale run` would have done. */
static int take_over(const struct takeover_start *start)
{
	struct json_value *doc = NULL;
	const struct json_value *options;
	uint32_t epoch = head_record_newest(start->folder);
	const char *reports = NULL, *report = NULL;
	struct error err;
	int status;

	if (epoch > 0 && head_record_read(start->folder, epoch, &doc, &err) == HALE_OK) {
		options = json_get(doc, "options");
		reports = json_text(json_get(options, "task_reports"), NULL);
		report = json_text(json_get(options, "report"), NULL);
	}
	status = takeover_run(start);
	/* the last head removes the record when the job is over */
	if (reports && status != EXIT_SUPERSEDED && head_record_newest(start->folder) == 0)
		cli_tasks_gather(reports, start->report ? start->report : report);
	json_free(doc);
	return status;
}

static int attach(const char *what, const char *report, bool force)
{
	struct takeover_start start = {.report = report, .agent = agent_run, .head = head_run};
	char folder[PATH_MAX], job[JOB_ID_MAX];
	bool headless;
	int64_t pid;

	if (!find_folder(what, folder, &headless)) {
		log_warn(
		    "no job '%s' waits for a head here; `hale ps` lists those that do, and the "
		    "folder of a job's checkpoints names it, too",
		    what);
		return EXIT_USAGE;
	}
	snprintf(job, sizeof(job), "%.63s", strrchr(folder, '/') + 1);
	/* a head that answers is none to be replaced */
	if (!force && !headless && headship(job, &pid) == HEAD) {
		log_warn("job %s has a head that answers (pid %d); --force takes the job away from "
			 "it",
			 job, (int)pid);
		return EXIT_USAGE;
	}
	start.folder = folder;
	return take_over(&start);
}

int cli_attach(int argc, char **argv)
{
	const char *what = NULL, *report = NULL;
	char job[JOB_ID_MAX];
	bool force = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return cli_help("attach");
		if (strcmp(argv[i], "--force") == 0)
			force = true;
		else if (strcmp(argv[i], "--report") == 0 && i + 1 < argc)
			report = argv[++i];
		else if (argv[i][0] != '-' && !what)
			what = argv[i];
		else
			return usage("hale attach takes a job, --force and --report FILE");
	}
	if (!what && !only_headless(job))
		return usage("there is not exactly one job without a head here: say which");
	return attach(what ? what : job, report, force);
}
