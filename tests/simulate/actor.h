/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks and remote shells (actor.c). */
#ifndef HALE_SIMULATE_ACTOR_H
#define HALE_SIMULATE_ACTOR_H

#include "kernel.h"

#define ACTOR_PROGRAM "/apps/program"

/* kernel->on_exec */
void actor_exec(struct proc *p, const char *path, char *const *argv, char *const *env);

/* world.c: this process does a step of its rank now, which the world would see. */
void actor_rank_steps(struct proc *p);

#endif
