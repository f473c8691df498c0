/* SPDX-License-Identifier: BSD-3-Clause */
/* When something is stuck: no progress and no processor time. The agent uses it for ranks, whose
 * progress it sees in their mailboxes; the load monitor for processes. */
#ifndef HALE_MONITOR_LOAD_H
#define HALE_MONITOR_LOAD_H

#include "monitor/kind.h"

struct load_stuck { /* zero at first */
	bool known, stuck;
	double since; /* the last time that it moved */
	uint64_t progress;
	double cpu;
};

/* progress is any number that changes when there is some; cpu the seconds used so far. Returns 1
 * when it has just become stuck (nothing for `after` seconds), -1 when it moves again, 0 else. */
int load_stuck_judge(struct load_stuck *s, double now, double after, uint64_t progress, double cpu);

#endif
