/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/base.h"
#include "base/clock.h"
#include "base/procstat.h"
#include "top/top.h"

/* How many bytes; 0: none, or there is no such process. */
static size_t read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, size - 1);
	close(fd);
	n = n > 0 ? n : 0;
	text[n] = '\0';
	return (size_t)n;
}

/* seconds: of the processor, so far. */
static void measure(struct top_rank *r, double seconds, uint64_t memory)
{
	double now = clock_seconds();

	if (r->cpu_at > 0 && now > r->cpu_at && seconds >= r->cpu_seconds)
		r->cpu = (seconds - r->cpu_seconds) / (now - r->cpu_at);
	r->cpu_seconds = seconds;
	r->cpu_at = now;
	r->memory = memory;
}

void top_local_read(struct top_job *job)
{
	struct procstat s;

	for (size_t i = 0; i < job->rank_count; i++) {
		struct top_rank *r = &job->ranks[i];

		if (!r->local || r->pid <= 0)
			continue;
		r->kernel = 0;
		if (!procstat_read(r->pid, &s))
			continue;
		r->kernel = s.state;
		measure(r, s.cpu_seconds, s.memory);
	}
}

void top_told(struct top_rank *r, const char *inside, double cpu_seconds, uint64_t memory)
{
	snprintf(r->inside, sizeof(r->inside), "%s", inside);
	if (r->local)
		return;
	r->kernel = '?';
	measure(r, cpu_seconds, memory);
}

const char *top_does(const struct top_rank *r)
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
	default:
		if (r->inside[0])
			return r->inside;
		/* a look is short: what it did since the last one says more */
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
	size_t written, len;
	FILE *f = open_memstream(&out, &written);

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
	len = read_proc(pid, "cmdline", text, 1024);
	if (len > 0) {
		for (size_t i = 0; i + 1 < len; i++) /* each argument ends with a NUL */
			if (!text[i])
				text[i] = ' ';
		fprintf(f, "command:\t%s\n", text);
	}
	fclose(f);
	return out;
}
