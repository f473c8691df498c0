/* SPDX-License-Identifier: BSD-3-Clause */
/* Images on this node's own disk, and their copies (docs/levels.md). Calls the copier. */
#ifndef HALE_AGENT_COPIES_AGENT_COPIES_H
#define HALE_AGENT_COPIES_AGENT_COPIES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "agent/copier/copier.h"
#include "store/store.h"
#include "wire/message/message.h"
#include "wire/session/loop.h"

struct agent;

/* The process that copies images, if there is one (docs/levels.md). */
struct agent_copies {
	struct store store; /* this node's folder */
	struct copier copier;
	pid_t pid; /* 0: none */
	struct loop_source source;
};

/* agent_copies.c */
hale_status_t agent_copies_start(struct agent *a, struct error *err);
void agent_copies_stop(struct agent *a);
/* A successor's: at the same addresses, with the orders that are not answered. */
void agent_copies_again(struct agent *a);
/* To a head that was not there when it began: where it is, and what images are here. */
void agent_copies_tell(struct agent *a);
bool agent_copies_take(struct agent *a, const struct message *m); /* false: it is none of ours */
void agent_copies_folder(struct agent *a, uint32_t id, char *folder, size_t cap);
/* One that is given up is set aside, and removed later. */
void agent_copies_discard(struct agent *a, uint32_t id);
void agent_copies_path(const struct agent *a, uint32_t id, char *folder, size_t cap);

#endif
