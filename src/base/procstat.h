/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says of a process in a line: /proc/PID/stat. */
#ifndef HALE_BASE_PROCSTAT_H
#define HALE_BASE_PROCSTAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct procstat {
	char name[32]; /* of the program's file; the kernel keeps 15 bytes */
	char state;    /* as proc(5) has it: R runs, S sleeps, T is stopped, Z has ended */
	pid_t parent, group;
	double cpu_seconds;
	uint64_t memory; /* resident, bytes */
};

/* False: there is no such process. */
bool procstat_read(pid_t pid, struct procstat *s);

#endif
