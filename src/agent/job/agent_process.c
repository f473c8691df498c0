/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes of ranks, as /proc shows them. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "agent/agent_private.h"

/* What /proc/PID/stat says from the end of the program's name on, which may have blanks; NULL: the
 * process is gone. */
static const char *stat_of(long pid, char *line, int size)
{
	char path[64];
	bool there;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	f = fopen(path, "re");
	there = f && fgets(line, size, f);
	if (f)
		fclose(f);
	return there ? strrchr(line, ')') : NULL;
}

/* As ps shows it: 'R', 'S', 'T', …; 'X': it is gone. */
char agent_process_state(long pid)
{
	char line[512];
	const char *state = stat_of(pid, line, sizeof(line));

	return state && strlen(state) >= 3 ? state[2] : 'X';
}

double agent_process_cpu(long pid)
{
	char line[512];
	unsigned long user, kernel;
	const char *rest = stat_of(pid, line, sizeof(line));

	if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			    &kernel) != 2)
		return -1;
	return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

bool agent_process_is_zombie(long pid)
{
	char state = agent_process_state(pid);

	return state == 'Z' || state == 'X';
}

/* A process that has executed a program without hale's library does not, and dies of the signal. */
bool agent_hears(pid_t pid)
{
	char path[64], line[256];
	unsigned long caught = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SigCgt: %lx", &caught) == 1)
			break;
	if (f)
		fclose(f);
	return (caught >> (PROTO_CKPT_SIGNAL - 1)) & 1;
}

/* Of a process whose main thread has called pthread_exit the others go on. */
pid_t agent_thread_of(pid_t pid)
{
	char path[64];
	struct dirent *e;
	pid_t found = agent_process_is_zombie(pid) ? 0 : pid;
	DIR *d;

	if (found)
		return found;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d)))
		if (e->d_name[0] != '.' && !agent_process_is_zombie(atol(e->d_name)))
			found = (pid_t)atol(e->d_name);
	if (d)
		closedir(d);
	return found;
}
