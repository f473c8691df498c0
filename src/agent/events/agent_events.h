/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's event broker on this host (docs/backplane.md). */
#ifndef HALE_AGENT_EVENTS_AGENT_EVENTS_H
#define HALE_AGENT_EVENTS_AGENT_EVENTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "wire/message/message.h"

struct agent_events;

struct agent;

/* agent_events.c: the job's event broker on this host */
void agent_events_start(struct agent *a);
void agent_events_stop(struct agent *a);
void agent_events_renew(struct agent *a); /* another head has come */
void agent_events_take(struct agent *a, const struct message *m);

#endif
