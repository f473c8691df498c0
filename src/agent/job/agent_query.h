/* SPDX-License-Identifier: BSD-3-Clause */
/* What any part of the agent may ask of it. Called by all of its parts, calls session/ only. */
#ifndef HALE_AGENT_JOB_AGENT_QUERY_H
#define HALE_AGENT_JOB_AGENT_QUERY_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "agent/supervisor/supervisor.h"
#include "base/reach.h"
#include "wire/message/message.h"

struct mailbox;

struct agent;

void agent_send(struct agent *a, const struct message *m);
/* Something of this node can't be used: tells the head. */
void agent_failed(struct agent *a, const struct error *err);

/* ---- processes, as /proc shows them ---- */

/* The main thread of a process, or another one if that has ended; 0: so has the process. */
pid_t agent_thread_of(pid_t pid);
/* As ps shows it: 'R', 'S', 'T', …; 'X': it is gone. */
char agent_process_state(long pid);
/* Seconds that its threads have computed; < 0: it is gone. */
double agent_process_cpu(long pid);
bool agent_process_is_zombie(long pid);
/* Does it handle the signal by which ranks are asked for things? */
bool agent_hears(pid_t pid);

/* ---- which ranks are here ---- */

/* Processes of the whole job that run at the same time. */
uint32_t agent_processes(const struct agent *a);
/* Cores that this node's processes are to have (of nodes that are one machine: the job's), and
 * which of them is that process's: the shadows of a set share one (ranks/agent_shadows.c). */
uint32_t agent_units(const struct agent *a);
uint32_t agent_unit_of(const struct agent *a, uint32_t process);
/* What each shadow may use of a core, in thousandths; 0: all that it gets. */
uint32_t agent_shadow_rate(const struct agent *a);
bool agent_has(const struct agent *a, uint32_t rank); /* it lives here */
struct mailbox *agent_mailbox(const struct agent *a, uint32_t rank);
/* A migration that is under way brings it here. */
bool agent_moves_in(const struct agent *a, uint32_t rank);
/* Its process here is not the rank yet, or was not when the head last said so. */
bool agent_is_copy(const struct agent *a, uint32_t rank);
/* … takes it from here. */
bool agent_moves_out(const struct agent *a, uint32_t rank);
/* A replica comes back here, beside its source. */
bool agent_copies_here(const struct agent *a, uint32_t rank);
/* A replica that is dead, and comes back as a copy of one that lives; of which. Others: itself. */
bool agent_is_cloned(const struct agent *a, uint32_t rank);
uint32_t agent_move_source(const struct agent *a, uint32_t rank);
/* It has moved from here, and its copy is not released yet: what it has printed comes first. */
bool agent_has_left(const struct agent *a, uint32_t rank);

/* ---- the user's environment, and the lease ---- */

/* What the user's environment says of interfaces and ports, and a variable of it (NULL: not set, or
 * empty). */
struct reach_wish agent_reach_wish(const struct agent *a);
const char *agent_variable(const struct agent *a, const char *name);
bool agent_lease_holds(const struct agent *a);

/* ---- what the supervisor need not hold any more ---- */

/* What the supervisor need not hold any more when the turn is written down. */
struct agent_drop {
	enum supervisor_kind kind;
	uint64_t key;
};

struct agent_drops {
	struct agent_drop *list; /* [count] */
	size_t count, cap;
};

void agent_drop_later(struct agent *a, enum supervisor_kind kind, uint64_t key);
/* The supervisor has something else as that by now. */
void agent_drop_not(struct agent *a, enum supervisor_kind kind, uint64_t key);

#endif
