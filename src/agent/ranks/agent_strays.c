/* SPDX-License-Identifier: BSD-3-Clause */
/* Descendants of ranks that have left their group (setsid, job control) outlive a killed rank, and
 * would do what they do beside those that a rollback rebuilds. Their environment says whose they
 * are. */
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/procstat.h"
#include "agent/agent_private.h"
#include "node/proto.h"

enum { ANCESTORS_MAX = 256 };

/* 0: there is no such process. */
static pid_t parent_of(pid_t pid)
{
	struct procstat s;

	return procstat_read(pid, &s) ? s.parent : 0;
}

/* The process whose children this node's ranks are; what they leave behind comes to it. 0: it has
 * ended, and somebody else is our parent. */
static pid_t supervisor_of_us(void)
{
	char path[64], name[32] = "";
	pid_t parent = getppid();
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)parent);
	f = fopen(path, "re");
	if (f && !fgets(name, sizeof(name), f))
		name[0] = '\0';
	if (f)
		fclose(f);
	return strcmp(name, SUPERVISOR_NAME "\n") == 0 ? parent : 0;
}

/* Has it no child but us? What ranks leave behind becomes its child, so there is nothing to look
 * for then, and most times that is so. False where the kernel doesn't tell. */
static bool only_child(pid_t supervisor)
{
	char path[64];
	long child = 0, count = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)supervisor, (int)supervisor);
	f = fopen(path, "re");
	while (f && fscanf(f, "%ld", &child) == 1)
		count++;
	if (f)
		fclose(f);
	return count == 1 && child == getpid();
}

static bool descends(pid_t pid, pid_t from)
{
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		pid = parent_of(pid);
		if (pid == from)
			return true;
	}
	return false;
}

/* Does it belong to a rank that this node has, or had before? Another node of the job may be on
 * this machine, and have a rank now that was ours: only what is below our supervisor is looked at.
 * *empty: it has no environment, as a process in the middle of exec. */
static bool look_at_environment(const struct agent *a, const char *pid, bool *empty)
{
	char path[64], job[160], *entry = NULL;
	size_t cap = 0;
	bool ours = false, waits = false;
	long process = -1;
	FILE *f;

	*empty = true;
	snprintf(job, sizeof(job), "HALE_JOB=%s", a->setup.job);
	snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
	f = fopen(path, "re");
	while (f && getdelim(&entry, &cap, '\0', f) > 0) {
		*empty = false;
		ours |= strcmp(entry, job) == 0;
		waits |= strcmp(entry, "HALE_SINK=" PROTO_STAND) == 0;
		if (strncmp(entry, "HALE_PROCESS=", 13) == 0)
			process = atol(entry + 13);
	}
	if (f)
		fclose(f);
	free(entry);
	return ours && !waits && process >= 0 && agent_has(a, (uint32_t)process);
}

static bool has_ended(const char *pid)
{
	struct procstat s;

	return !procstat_read((pid_t)atoi(pid), &s) || s.state == 'Z' || s.state == 'X';
}

static bool is_stray(const struct agent *a, const char *pid)
{
	enum { LOOKS = 5, PAUSE_US = 1000 };
	bool empty, stray = look_at_environment(a, pid, &empty);

	for (int i = 1; empty && i < LOOKS && !has_ended(pid); i++) {
		usleep(PAUSE_US);
		stray = look_at_environment(a, pid, &empty);
	}
	return stray;
}

bool agent_strays_gone(const struct agent *a)
{
	pid_t supervisor = supervisor_of_us();
	DIR *d = supervisor > 0 && !only_child(supervisor) ? opendir("/proc") : NULL;
	struct dirent *e;
	bool gone = true;

	while (d && (e = readdir(d))) {
		pid_t pid = (pid_t)atoi(e->d_name);

		if (!isdigit((unsigned char)e->d_name[0]) || pid == getpid() ||
		    !descends(pid, supervisor) || !is_stray(a, e->d_name))
			continue;
		kill(pid, SIGKILL);
		gone = false;
	}
	if (d)
		closedir(d);
	return gone;
}
