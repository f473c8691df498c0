/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts one process of a job. */
#ifndef HALE_LAUNCH_LAUNCH_H
#define HALE_LAUNCH_LAUNCH_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

struct launch {
	const char *path;
	char *const *argv;
	char **env;		      /* see environment.h */
	const char *wdir;	      /* NULL: this process's */
	int fd[3];		      /* become 0, 1, 2 */
	pid_t id;		      /* that it shall have if that can be; 0: any */
	const cpu_set_t *cpus;	      /* NULL: as they are */
	_Atomic int32_t *group;	      /* where its group is written down first; NULL: nowhere */
	const _Atomic uint32_t *over; /* … and not 0 here: it is not to begin */
	/* while it is waited for; may be NULL */
	void (*meanwhile)(void *arg);
	void *arg;
};

/* The process leads a group of its own, has no address-space randomisation, dies with the caller,
 * has the signals as they were at the caller's start, and only the three descriptors. *pid is set
 * as soon as there is a process; returns only when exec has succeeded or failed. */
hale_status_t launch_process(const struct launch *l, pid_t *pid, struct error *err);

#endif
