/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/clock.h"
#include "top/top.h"

static bool read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static void read_rank(struct top_rank *r, double ticks_a_second, uint64_t page)
{
	char text[1024], state;
	unsigned long user, system;
	long pages;
	const char *at;
	double now = clock_seconds();

	r->kernel = 0;
	if (!read_proc(r->pid, "stat", text, sizeof(text)))
		return;
	at = strrchr(text, ')'); /* the name may hold anything */
	if (!at || sscanf(at + 1,
			  " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d "
			  "%*d %*d %*u %*u %ld",
			  &state, &user, &system, &pages) != 4)
		return;
	r->kernel = state;
	r->memory = (uint64_t)pages * page;
	if (r->ticks_at > 0 && now > r->ticks_at && user + system >= r->ticks)
		r->cpu = (double)(user + system - r->ticks) / ticks_a_second / (now - r->ticks_at);
	r->ticks = user + system;
	r->ticks_at = now;
}

void top_local_read(struct top_job *job)
{
	double ticks = (double)sysconf(_SC_CLK_TCK);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < job->rank_count; i++)
		if (job->ranks[i].local && job->ranks[i].pid > 0)
			read_rank(&job->ranks[i], ticks, page);
}

const char *top_local_does(const struct top_rank *r)
{
	if (strcmp(r->state, "running") != 0 || !r->kernel)
		return r->state;
	switch (r->kernel) {
	case 'T':
	case 't':
		return "stopped";
	case 'D':
		return "waits for a disk";
	case 'Z':
		return "has died";
	default: /* a look is short: what it did since the last one says more */
		return r->cpu >= 0.5 || (r->cpu < 0 && r->kernel == 'R') ? "computes" : "waits";
	}
}

/* ---- one process ---- */

static void copy_fields(FILE *f, const char *status)
{
	static const char *const wanted[] = {"State:",
					     "VmSize:",
					     "VmRSS:",
					     "VmSwap:",
					     "Threads:",
					     "voluntary_ctxt_switches:",
					     "nonvoluntary_ctxt_switches:",
					     "Cpus_allowed_list:"};

	for (const char *line = status; *line; line += strcspn(line, "\n"), line += *line == '\n')
		for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
			if (strncmp(line, wanted[i], strlen(wanted[i])) == 0)
				fprintf(f, "%.*s\n", (int)strcspn(line, "\n"), line);
}

char *top_local_describe(pid_t pid)
{
	char text[4096], *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);

	if (!f)
		return NULL;
	if (!read_proc(pid, "status", text, sizeof(text))) {
		fputs("There is no such process on this machine.\n", f);
		fclose(f);
		return out;
	}
	copy_fields(f, text);
	if (read_proc(pid, "wchan", text, sizeof(text)))
		fprintf(f, "waits in the kernel:\t%s\n", strcmp(text, "0") == 0 ? "no" : text);
	if (read_proc(pid, "syscall", text, sizeof(text)))
		fprintf(f, "system call:\t%.*s\n", (int)strcspn(text, " \n"), text);
	if (read_proc(pid, "cmdline", text, 1024)) {
		for (size_t i = 0; text[i] || text[i + 1]; i++)
			if (!text[i])
				text[i] = ' ';
		fprintf(f, "command:\t%s\n", text);
	}
	fclose(f);
	return out;
}
