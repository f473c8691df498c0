/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node suffers from beside hardware: pressure, killed processes, stuck ones, a clock that
 * jumps, a full file system.
 *
 * Lines of a reading:
 *   pressure RESOURCE PERCENT      cpu, io, memory: share of the last 10 s in which tasks waited
 *   oom COUNT                      processes that the kernel has ended for want of memory
 *   kernel TEXT                    a line of the kernel's log
 *   clock SECONDS                  the time of day minus the time since boot
 *   disk PATH BYTES FREE           of a file system
 *   process PID STATE CPU SWITCHES state as in /proc/PID/stat, seconds of CPU, context switches
 *   process PID gone
 *
 * Each condition has a mark at which it begins and a lower one at which it ends. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base.h"
#include "monitor/load.h"

enum { DISKS_MAX = 64, PROCESSES_MAX = 4096, RESOURCES = 3 };

static const char *const resource_names[RESOURCES] = {"cpu", "io", "memory"};
static const double resource_marks[RESOURCES] = {90, 50, 10};

struct disk {
	char path[256];
	bool full;
};

struct load_process {
	int pid;
	struct load_stuck stuck;
};

struct load_state {
	bool pressed[RESOURCES];
	bool clock_known, oom_known, oom_named;
	double clock;
	uint64_t oom;
	struct disk disks[DISKS_MAX];
	struct load_process *processes;
	int disk_count, process_count, process_cap;
};

static void pressure_is(struct judge *j, const char *name, double percent)
{
	struct load_state *s = j->state;

	for (int i = 0; i < RESOURCES; i++) {
		double mark =
		    j->options->pressure[i] > 0 ? j->options->pressure[i] : resource_marks[i];

		if (strcmp(name, resource_names[i]) != 0)
			continue;
		if (!s->pressed[i] && percent >= mark)
			judge_publish(j, "FTB_LOAD_PRESSURE", MONITOR_WARNING,
				      "RESOURCE:%s::PERCENT:%.1f", name, percent);
		else if (s->pressed[i] && percent <= mark / 2)
			judge_publish(j, "FTB_LOAD_PRESSURE_OVER", MONITOR_INFO,
				      "RESOURCE:%s::PERCENT:%.1f", name, percent);
		s->pressed[i] = percent >= mark || (s->pressed[i] && percent > mark / 2);
	}
}

/* Where the log can be read it also names who was ended; then the counter says nothing new. */
static void oom_is(struct judge *j, uint64_t count)
{
	struct load_state *s = j->state;

	if (s->oom_known && !s->oom_named && count > s->oom)
		judge_publish(j, "FTB_LOAD_OOM_KILL", MONITOR_ERROR, "COUNT:%llu",
			      (unsigned long long)(count - s->oom));
	s->oom_known = true;
	s->oom = count;
}

/* "Out of memory: Killed process 4711 (lmp) total-vm:…" and "Memory cgroup out of memory: …". */
static void kernel_line(struct judge *j, const char *text)
{
	struct load_state *s = j->state;
	const char *p = strcasestr(text, "out of memory: Killed process ");
	char name[32];
	int pid;

	if (!p || sscanf(p + 15, "Killed process %d (%31[^)])", &pid, name) != 2)
		return;
	s->oom_named = true;
	judge_publish(j, "FTB_LOAD_OOM_KILL", MONITOR_ERROR, "PID:%d::NAME:%s", pid, name);
}

static void clock_is(struct judge *j, double offset)
{
	struct load_state *s = j->state;

	if (s->clock_known && fabs(offset - s->clock) >= 1)
		judge_publish(j, "FTB_LOAD_CLOCK_JUMP", MONITOR_WARNING, "SECONDS:%.3f",
			      offset - s->clock);
	s->clock_known = true;
	s->clock = offset; /* slewing, as NTP does it, stays far below a second a reading */
}

static void disk_is(struct judge *j, const char *path, uint64_t bytes, uint64_t free)
{
	struct load_state *s = j->state;
	double least = j->options->disk_min > 0 ? j->options->disk_min : 0.05;
	double part = bytes ? (double)free / (double)bytes : 0;
	struct disk *d = s->disks, *end = d + s->disk_count;

	while (d < end && strcmp(d->path, path) != 0)
		d++;
	if (d == end) {
		if (s->disk_count == DISKS_MAX)
			return;
		s->disk_count++;
		snprintf(d->path, sizeof(d->path), "%s", path);
	}
	if (!d->full && part < least)
		judge_publish(j, "FTB_LOAD_DISK_FULL", MONITOR_ERROR, "PATH:%s::FREE:%llu", path,
			      (unsigned long long)free);
	else if (d->full && part >= least * 1.5)
		judge_publish(j, "FTB_LOAD_DISK_OK", MONITOR_INFO, "PATH:%s::FREE:%llu", path,
			      (unsigned long long)free);
	d->full = part < least || (d->full && part < least * 1.5);
}

/* ---- stuck processes ---- */

int load_stuck_judge(struct load_stuck *s, double now, double after, uint64_t progress, double cpu)
{
	bool moved = !s->known || progress != s->progress || cpu > s->cpu;

	if (moved) {
		bool was = s->known && s->stuck;
		*s = (struct load_stuck){
		    .known = true, .since = now, .progress = progress, .cpu = cpu};
		return was ? -1 : 0;
	}
	if (s->stuck || now - s->since < after)
		return 0;
	s->stuck = true;
	return 1;
}

static struct load_process *process_of(struct load_state *s, int pid)
{
	for (int i = 0; i < s->process_count; i++)
		if (s->processes[i].pid == pid)
			return &s->processes[i];
	if (s->process_count == s->process_cap) {
		int cap = s->process_cap ? s->process_cap * 2 : 16;
		void *v = cap > PROCESSES_MAX
			      ? NULL
			      : realloc(s->processes, (size_t)cap * sizeof(*s->processes));
		if (!v)
			return NULL;
		s->processes = v;
		s->process_cap = cap;
	}
	struct load_process *new = &s->processes[s->process_count++];
	*new = (struct load_process){.pid = pid};
	return new;
}

static void process_is(struct judge *j, int pid, char state, double cpu, uint64_t switches)
{
	struct load_process *p = process_of(j->state, pid);
	double after = j->options->stuck_after > 0 ? j->options->stuck_after : 60;

	if (!p)
		return;
	switch (load_stuck_judge(&p->stuck, j->now, after, switches, cpu)) {
	case 1:
		judge_publish(j, "FTB_LOAD_STUCK", MONITOR_ERROR, "PID:%d::STATE:%c::SECONDS:%.0f",
			      pid, state, j->now - p->stuck.since);
		break;
	case -1:
		judge_publish(j, "FTB_LOAD_MOVES", MONITOR_INFO, "PID:%d", pid);
		break;
	default:
		break;
	}
}

static void process_gone(struct load_state *s, int pid)
{
	for (int i = 0; i < s->process_count; i++)
		if (s->processes[i].pid == pid)
			s->processes[i] = s->processes[--s->process_count];
}

static bool process_line(struct judge *j, char **rest)
{
	uint64_t pid, switches;
	const char *state;
	double cpu;

	if (!line_count(line_word(rest), &pid) || pid > 1u << 30 || !(state = line_word(rest)))
		return false;
	if (!strcmp(state, "gone")) {
		process_gone(j->state, (int)pid);
		return true;
	}
	if (!line_number(line_word(rest), &cpu) || !line_count(line_word(rest), &switches))
		return false;
	process_is(j, (int)pid, *state, cpu, switches);
	return true;
}

static bool known_line(struct judge *j, const char *what, char **rest)
{
	const char *name;
	uint64_t a, b;
	double value;

	if (!strcmp(what, "kernel")) {
		kernel_line(j, *rest);
		return true;
	}
	if (!strcmp(what, "process"))
		return process_line(j, rest);
	if (!strcmp(what, "oom") && line_count(line_word(rest), &a)) {
		oom_is(j, a);
		return true;
	}
	if (!strcmp(what, "clock") && line_number(line_word(rest), &value)) {
		clock_is(j, value);
		return true;
	}
	if (!strcmp(what, "pressure") && (name = line_word(rest)) &&
	    line_number(line_word(rest), &value)) {
		pressure_is(j, name, value);
		return true;
	}
	if (!strcmp(what, "disk") && (name = line_word(rest)) && line_count(line_word(rest), &a) &&
	    line_count(line_word(rest), &b)) {
		disk_is(j, name, a, b);
		return true;
	}
	return false;
}

static hale_status_t load_line(struct judge *j, char *line, struct error *err)
{
	char *rest = line;
	const char *what = line_word(&rest);

	if (what && known_line(j, what, &rest))
		return HALE_OK;
	return line_unknown(what, "pressure, oom, kernel, clock, disk, process", err);
}

static void load_end(struct judge *j)
{
	(void)j; /* every line speaks for itself */
}

static void load_fini(struct judge *j)
{
	free(((struct load_state *)j->state)->processes);
}

const struct monitor_kind monitor_load = {.name = "load",
					  .space = "FTB.FTB_LOAD",
					  .every = 5,
					  .state_size = sizeof(struct load_state),
					  .line = load_line,
					  .end = load_end,
					  .fini = load_fini,
					  .read = monitor_load_read};
