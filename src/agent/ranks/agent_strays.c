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
#include "agent/agent_private.h"
#include "node/proto.h"

/* Does it belong to a rank that this node has, or had before? */
static bool is_stray(const struct agent *a, const char *pid)
{
	char path[64], job[160], *entry = NULL;
	size_t cap = 0;
	bool ours = false, waits = false;
	long process = -1;
	FILE *f;

	snprintf(job, sizeof(job), "HALE_JOB=%s", a->setup.job);
	snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
	f = fopen(path, "re");
	while (f && getdelim(&entry, &cap, '\0', f) > 0) {
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

bool agent_strays_gone(const struct agent *a)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	bool gone = true;

	while (d && (e = readdir(d))) {
		pid_t pid = (pid_t)atoi(e->d_name);

		if (!isdigit((unsigned char)e->d_name[0]) || pid == getpid() || !is_stray(a, e->d_name))
			continue;
		kill(pid, SIGKILL);
		gone = false;
	}
	if (d)
		closedir(d);
	return gone;
}
