/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that `hale run --spawn` keeps in reserve for MPI_Comm_spawn: what the node's segment
 * holds for each of them, and how the environment says who is in whose MPI_COMM_WORLD.
 *
 *   STARTING ─▶ IDLE ─▶ ORDERED ─▶ BEGUN ─▶ DONE
 *                          ▲                  │
 *                          └──────────────────┘
 *
 * The agent makes it STARTING before anybody maps the segment; the rest the process does itself. It
 * is IDLE in its first MPI_Init, ORDERED while it executes the program that it was asked for, BEGUN
 * in that one's MPI_Init, DONE behind that one's MPI_Finalize. A process that is DONE still takes
 * part in checkpoints, and becomes another program, or ends when the job does. A segment begins
 * anew after a rollback: each process then writes its own state again. */
#ifndef HALE_NODE_SPAWN_LAYOUT_H
#define HALE_NODE_SPAWN_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "base/base.h"

enum spawn_state {
	SPAWN_NONE = 0, /* a process of the first world */
	SPAWN_STARTING,
	SPAWN_IDLE,
	SPAWN_ORDERED,
	SPAWN_BEGUN,
	SPAWN_DONE,
};

enum {
	SPAWN_NAMES = 16, /* that one process may publish at a time */
	SPAWN_NAME_MAX = 256,
	SPAWN_PORT_MAX = 128,
};

/* A service that the room's process has published. */
struct spawn_name {
	_Atomic uint32_t there;
	char service[SPAWN_NAME_MAX], port[SPAWN_PORT_MAX];
};

struct spawn_room {
	_Atomic uint32_t state; /* enum spawn_state */
	struct spawn_name names[SPAWN_NAMES];
} __attribute__((aligned(HALE_PAGE)));

static inline size_t spawn_bytes(uint32_t nranks)
{
	return (size_t)nranks * sizeof(struct spawn_room);
}

/* HALE_WORLD: the processes of a world in their order, "0-3" or "5,7-9". Takes the next run off the
 * text. False: there is none, or the text is no such list. */
static inline bool spawn_world_run(const char **text, uint32_t *first, uint32_t *last)
{
	char *end;
	if (!*text || **text < '0' || **text > '9')
		return false;
	*first = *last = (uint32_t)strtoul(*text, &end, 10);
	if (*end == '-')
		*last = (uint32_t)strtoul(end + 1, &end, 10);
	*text = *end == ',' ? end + 1 : end;
	return *last >= *first;
}

static inline bool spawn_world_has(const char *text, uint32_t process)
{
	uint32_t first, last;
	while (spawn_world_run(&text, &first, &last))
		if (process >= first && process <= last)
			return true;
	return false;
}

#endif
