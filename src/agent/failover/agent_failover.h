/* SPDX-License-Identifier: BSD-3-Clause */
/* One head goes, another one comes; one agent dies, another one takes its place (docs/attach.md,
 * docs/nodes.md). Calls all other parts. */
#ifndef HALE_AGENT_FAILOVER_AGENT_FAILOVER_H
#define HALE_AGENT_FAILOVER_AGENT_FAILOVER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "agent/supervisor/supervisor.h"
#include "wire/session/loop.h"
#include "wire/session/setup.h"

struct agent;

/* The head that is heard, and others that may come. */
struct agent_heads {
	uint32_t epoch;	   /* of the head that is heard */
	uint64_t sessions; /* with other heads so far: the key of the newest one's descriptors */
	bool gone;	   /* it is waited for another head */
	int listener;	   /* where new heads reconnect; -1: nowhere */
	struct loop_source listening;
	struct agent_caller *callers;
	struct loop_timer forget, alone, look;
	double alone_until; /* clock_seconds(); 0: alone is not armed */
};

/* agent_head.c: docs/attach.md */
hale_status_t agent_heads_listen(struct agent *a, struct error *err);
void agent_heads_again(struct agent *a, const struct book_state *s);
void agent_heads_close(struct agent *a);
/* Into the job's record: this node ends, and there is no head that could be told. */
void agent_write_down(const struct setup *s, const char *why);
/* The head is gone. True: another one is waited for; false: the ranks are to end. */
bool agent_heads_wait(struct agent *a);

/* agent_record.c */
/* What this turn has come to is written down, and only then what it says goes out. */
void agent_record_write(void *agent);
/* Out of what is written down, before anything else. */
void agent_read_back(struct agent *a, const struct book_state *s);
/* … of which only how far it has come, where there is no job yet. */
void agent_read_counts(struct agent *a, const struct book_state *s);

/* agent_adopt.c: begins where another agent has ended. False with a sentence: it can't. */
bool agent_adopt(struct agent *a, struct error *err);
/* In the supervisor: no agent is left, and none will be. False: no head could hear it. */
bool agent_bye(struct supervisor *g, const char *why);

#endif
