/* SPDX-License-Identifier: BSD-3-Clause */
/* The machines that a job may use: a file (--hosts), a list (--host), or the nodes of a Slurm
 * allocation. */
#ifndef HALE_LAUNCH_HOSTS_H
#define HALE_LAUNCH_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "node/job.h"
#include "policy/place.h"

struct host {
	char name[JOB_NODE_NAME];
	uint32_t slots; /* 0: not said */
};

struct hosts {
	struct host *at;
	uint32_t count;
	bool slurm; /* they are started by srun */
};

/* Adds the hosts of a text: one a line, "NAME [slots=N]" or "NAME:N", an address of IPv6 with slots
 * as "[ADDRESS]:N"; # begins a comment. A name that comes again adds its slots (1 where not said).
 * what names the text in sentences. */
hale_status_t hosts_parse(struct hosts *h, const char *text, const char *what, struct error *err);
hale_status_t hosts_read(struct hosts *h, const char *path, struct error *err);
/* "a,b:4,c": :N are slots, as mpirun has them. */
hale_status_t hosts_list(struct hosts *h, const char *list, struct error *err);
/* The allocation that this process is in, if it is in one: then h->count > 0. step: the tasks of
 * this process's step are the ranks. */
hale_status_t hosts_slurm(struct hosts *h, bool step, struct error *err);
/* Which rank on which host; the last spares of them get none. With nodes only the first so many
 * that are no spares are used; per_node, if not 0, stands for slots. */
hale_status_t hosts_place(const struct hosts *h, uint32_t nranks, long nodes, long per_node,
			  long spares, struct placement *p, struct error *err);
void hosts_fini(struct hosts *h);

#endif
