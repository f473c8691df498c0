/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the agent share. */
#ifndef HALE_JOB_AGENT_PRIVATE_H
#define HALE_JOB_AGENT_PRIVATE_H

#include "job/agent.h"

/* A connection; rank is set once it has said HELLO. */
struct agent_conn {
	struct agent *agent;
	struct loop_source source;
	pid_t peer;
	int64_t rank; /* -1: has not said HELLO */
	struct agent_conn *next;
};

/* agent_conn.c */
hale_status_t agent_listen(struct agent *a, struct error *err);
void agent_conns_close(struct agent *a);
void agent_conn_drop(struct agent *a, struct agent_rank *r);

#endif
