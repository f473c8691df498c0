/* SPDX-License-Identifier: BSD-3-Clause */
/* Load by what /proc says, file systems by statvfs, clocks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include "base/base.h"
#include "monitor/kind.h"

static const char *proc_of(const struct reader *r)
{
	return r->options->proc ? r->options->proc : "/proc";
}

/* "some avg10=0.00 avg60=…\nfull avg10=…": for the processor "some" is what counts, since there
 * "full" has no meaning; for the others "full", when nobody got on. */
static void pressure_look(struct reader *r)
{
	static const struct {
		const char *name, *line;
	} resources[] = {{"cpu", "some"}, {"io", "full"}, {"memory", "full"}};
	char folder[4096], text[512];

	snprintf(folder, sizeof(folder), "%.4000s/pressure", proc_of(r));
	for (size_t i = 0; i < ARRAY_LEN(resources); i++) {
		double percent;
		const char *p;

		if (reader_file(folder, resources[i].name, text, sizeof(text)) &&
		    (p = strstr(text, resources[i].line)) &&
		    sscanf(p + 4, " avg10=%lf", &percent) == 1)
			reader_line(r, "pressure %s %.2f", resources[i].name, percent);
	}
}

static void oom_look(struct reader *r)
{
	char text[16384];
	const char *p;
	unsigned long long count;

	if (reader_file(proc_of(r), "vmstat", text, sizeof(text)) &&
	    (p = strstr(text, "\noom_kill ")) && sscanf(p, "\noom_kill %llu", &count) == 1)
		reader_line(r, "oom %llu", count);
}

static void clock_look(struct reader *r)
{
	struct timespec day, boot;

	clock_gettime(CLOCK_REALTIME, &day);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	reader_line(r, "clock %.3f",
		    (double)(day.tv_sec - boot.tv_sec) +
			(double)(day.tv_nsec - boot.tv_nsec) * 1e-9);
}

/* What a user can still write: root's reserve does not help a rank. */
static void disk_look(struct reader *r, const char *path)
{
	struct statvfs v;

	if (statvfs(path, &v) == 0)
		reader_line(r, "disk \"%s\" %llu %llu", path,
			    (unsigned long long)v.f_blocks * v.f_frsize,
			    (unsigned long long)v.f_bavail * v.f_frsize);
}

static uint64_t switches(const char *status)
{
	unsigned long long voluntary = 0, forced = 0;
	const char *p = strstr(status, "\nvoluntary_ctxt_switches:");

	if (p)
		sscanf(p, "\nvoluntary_ctxt_switches: %llu nonvoluntary_ctxt_switches: %llu",
		       &voluntary, &forced);
	return voluntary + forced;
}

static void process_look(struct reader *r, int pid)
{
	char folder[4096], stat[1024], status[4096];
	unsigned long long user, kernel;
	const char *p;
	char state;

	snprintf(folder, sizeof(folder), "%.4000s/%d", proc_of(r), pid);
	if (!reader_file(folder, "stat", stat, sizeof(stat)) ||
	    !reader_file(folder, "status", status, sizeof(status)) || !(p = strrchr(stat, ')')) ||
	    sscanf(p, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &state, &user,
		   &kernel) != 3 ||
	    state == 'Z') {
		reader_line(r, "process %d gone", pid);
		return;
	}
	reader_line(r, "process %d %c %.2f %llu", pid, state,
		    (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK),
		    (unsigned long long)switches(status));
}

void monitor_load_read(struct reader *r)
{
	static struct tail kernel;
	const struct monitor_options *o = r->options;

	tail_open(&kernel, o->kernel_log ? o->kernel_log : "/dev/kmsg", false);
	for (;;) {
		pressure_look(r);
		reader_log(r, &kernel, "kernel"); /* before the counter: it names whom */
		oom_look(r);
		clock_look(r);
		for (int i = 0; i < o->disk_count; i++)
			disk_look(r, o->disks[i]);
		for (int i = 0; i < o->pid_count; i++)
			process_look(r, o->pids[i]);
		reader_end(r);
		reader_wait(r, tail_fd(&kernel));
	}
}
