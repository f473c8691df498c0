/* SPDX-License-Identifier: BSD-3-Clause */
/* Folders of checkpoints that jobs have left: what is there, and what may go. */
#ifndef HALE_CLI_CHECKPOINTS_H
#define HALE_CLI_CHECKPOINTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

typedef enum left_state {
	LEFT_ENDED,   /* its record says so */
	LEFT_KILLED,  /* it began on this machine, and runs no more */
	LEFT_RUNNING, /* here */
	LEFT_UNKNOWN, /* it may run on another machine */
	LEFT_STATES
} left_state_t;

/* The folder of one job. */
struct left {
	char folder[PATH_MAX]; /* real */
	char job[128];	       /* its last part */
	char node[64];	       /* where it began; "": nobody knows */
	left_state_t state;
	int exit_status; /* LEFT_ENDED */
	uint32_t *ids;	 /* of the complete checkpoints, oldest first; owned */
	size_t count;
	uint64_t bytes;	    /* of all that is in the folder */
	double newest_at;   /* seconds since 1970: the newest checkpoint, or the folder itself */
};

/* HALE_ERR_IMAGE_MISSING: there is no such folder, or it is none of a job; _MISMATCH: it is not this
 * user's. Afterwards left_fini. */
hale_status_t left_look(const char *folder, struct left *l, struct error *err);
void left_fini(struct left *l);

/* Removes all that jobs leave in their folders, and the folder; HALE_ERR_STORE: something else is in
 * it, and stays. */
hale_status_t left_remove(const struct left *l, struct error *err);
/* One checkpoint. HALE_ERR_STATE: a newer one is a difference to it. */
hale_status_t left_remove_one(const struct left *l, uint32_t id, struct error *err);

uint64_t left_bytes(const char *folder);

#endif
