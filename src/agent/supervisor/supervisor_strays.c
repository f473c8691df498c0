/* SPDX-License-Identifier: BSD-3-Clause */
/* Descendants of ranks that have left their group (setsid, job control). They outlive a killed
 * rank, and would do what they do beside those that a rollback rebuilds. Their environment says
 * whose they are.
 *
 * Another node of the job may be on this machine, and have a rank now that was this one's: so only
 * those count whose nearest supervisor is this node's, or who have none. What a dead supervisor
 * leaves behind has none. */
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/base.h"
#include "base/procstat.h"
#include "agent/supervisor/supervisor.h"

enum { ANCESTORS_MAX = 256, LOOKS = 5, PAUSE_US = 1000 };

/* 0: no process above it is one. */
static pid_t stray_supervisor(pid_t pid)
{
	struct procstat s;

	for (int i = 0; i < ANCESTORS_MAX && procstat_read(pid, &s); i++) {
		if (s.parent <= 1)
			return 0;
		pid = s.parent;
		if (procstat_read(pid, &s) && strcmp(s.name, SUPERVISOR_NAME) == 0)
			return pid;
	}
	return 0;
}

/* Is it of a rank that this node has, or had before? *empty: it has no environment, as a process in
 * the middle of exec. */
static bool stray_look(const struct supervisor_strays *s, const char *pid, bool *empty)
{
	char path[64], job[160], *entry = NULL;
	size_t cap = 0;
	bool ours = false, waits = false;
	long process = -1;
	FILE *f;

	*empty = true;
	snprintf(job, sizeof(job), "HALE_JOB=%s", s->job);
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
	return ours && !waits && process >= 0 && s->has(s->arg, (uint32_t)process);
}

/* Somebody's process that still does something; what the kernel runs by itself has no memory. */
static bool stray_is_possible(const char *pid)
{
	char path[64];
	struct procstat s;
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.20s", pid);
	return stat(path, &st) == 0 && st.st_uid == geteuid() &&
	       procstat_read((pid_t)atoi(pid), &s) && s.state != 'Z' && s.state != 'X' &&
	       s.memory > 0;
}

static bool stray_is_ours(const struct supervisor_strays *s, const char *pid)
{
	bool empty, stray = stray_look(s, pid, &empty);
	pid_t above;

	for (int i = 1; empty && i < LOOKS && stray_is_possible(pid); i++) {
		usleep(PAUSE_US);
		stray = stray_look(s, pid, &empty);
	}
	if (!stray)
		return false;
	above = stray_supervisor((pid_t)atoi(pid));
	return above == s->supervisor || above == 0;
}

bool supervisor_strays_gone(const struct supervisor_strays *s)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	bool gone = true;

	while (d && (e = readdir(d))) {
		pid_t pid = (pid_t)atoi(e->d_name);

		if (!isdigit((unsigned char)e->d_name[0]) || pid == getpid() ||
		    !stray_is_possible(e->d_name) || !stray_is_ours(s, e->d_name))
			continue;
		if (!s->spared)
			kill(pid, SIGKILL);
		gone = false;
	}
	if (d)
		closedir(d);
	return gone;
}
