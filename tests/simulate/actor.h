/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks and remote shells (actor.c). */
#ifndef HALE_SIMULATE_ACTOR_H
#define HALE_SIMULATE_ACTOR_H

#include "kernel.h"

#define ACTOR_PROGRAM "/apps/program"

/* kernel->on_exec */
void actor_exec(struct proc *p, const char *path, char *const *argv, char *const *env);

/* A process of a rank, as the ones beside it see it. */
struct actor_rank {
	uint32_t rank, generation, restored; /* from that checkpoint; 0: from the beginning */
	long step;			     /* it is to do next */
};

/* judge.c: it begins; this process does a step of its rank now, which the world would see; it has
 * done one; whether it may do the next one, or waits for what the others would send it. */
void actor_rank_begins(const struct actor_rank *k);
void actor_rank_steps(struct proc *p);
void actor_rank_has_done(const struct actor_rank *k);
bool actor_rank_may_step(const struct actor_rank *k, bool waits);
/* world.c: how long a step, and becoming an image, take this time, in µs; and a moment that faults
 * may follow. */
unsigned actor_step_time(void);
unsigned actor_back_time(void);
void actor_checkpoint_begins(void);
void actor_restore_begins(void);

#endif
