/* SPDX-License-Identifier: BSD-3-Clause */
/* May a job go on after a rank or a node is lost, and from which checkpoint? */
#ifndef HALE_POLICY_RECOVERY_H
#define HALE_POLICY_RECOVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the head knows when ranks are lost. */
struct recovery_facts {
	bool allowed;	   /* --max-restarts is not 0 */
	uint32_t restarts; /* rollbacks so far */
	uint32_t restarts_max;
	bool checkpoint;   /* some checkpoint is within reach (recovery_newest) */
	bool beginning;	   /* the job may start again from its beginning */
	bool node_is_left; /* some node can run ranks */
};

/* A rank that died of a signal. */
struct recovery_death {
	int signal;
	int previous_signal; /* that ended the same rank since the last checkpoint; 0: none */
	bool uncatchable;    /* the signal is SIGKILL: it says nothing about the program */
};

typedef enum recovery_verdict {
	RECOVERY_ROLL_BACK,	/* the job goes back to a checkpoint, or to its beginning */
	RECOVERY_NOT_ALLOWED,	/* the user wants no restart */
	RECOVERY_NO_NODE,	/* nothing is left to run on */
	RECOVERY_NO_CHECKPOINT, /* there is nothing to go back to */
	RECOVERY_SAME_DEATH,	/* the same rank died of the same signal at the same place */
	RECOVERY_TOO_OFTEN,	/* --max-restarts is used up */
	RECOVERY_VERDICTS
} recovery_verdict_t;

/* death NULL: a node is lost. */
recovery_verdict_t recovery_judge(const struct recovery_facts *f,
				  const struct recovery_death *death);

/* The end of a sentence about the loss ("the job ends: ..."); NULL for RECOVERY_ROLL_BACK. */
const char *recovery_verdict_text(recovery_verdict_t verdict);

/* The job could have gone on with other settings, or more checkpoints: hale's own exit status
 * tells so. Otherwise the job ends with what the rank died of. */
bool recovery_verdict_is_ours(recovery_verdict_t verdict);

/* Checkpoints (above, to] belong to a future that was given up: `hale restart` chose an older one,
 * or one of them could not be restored. */
struct recovery_skip {
	uint32_t above, to;
};

bool recovery_skips(const struct recovery_skip *skip, uint32_t id);

/* The skip that passes over `id` as well. */
struct recovery_skip recovery_skip_more(const struct recovery_skip *skip, uint32_t id);

/* The newest checkpoint of ids[count], ascending, that is not skipped, and of which
 * reachable(arg, id) says that its images can still be had. 0: none. */
uint32_t recovery_newest(const uint32_t *ids, size_t count, const struct recovery_skip *skip,
			 bool (*reachable)(void *arg, uint32_t id), void *arg);

#endif
