/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks spend their time on: a stretch between two looks at their meters has one phase.
 * Calls nodes/. */
#ifndef HALE_HEAD_PROFILE_HEAD_PROFILE_H
#define HALE_HEAD_PROFILE_HEAD_PROFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "report/profile.h"

struct head;

/* The phase of the profile changes as soon as the meters of all ranks have come in. */
struct profile_turn {
	uint32_t look;
	enum profile_phase next;
	double at;
	uint64_t checkpoint; /* whose stretch ends: its number in the report; 0: none */
	struct profile_turn *next_turn;
};

struct profile_turns {
	enum profile_phase phase; /* that the newest of the turns leads to */
	struct profile_turn *list;
	uint32_t final_look;
};

/* head_profile.c: call the first when the state of the job or of its checkpoint has changed, before
 * a new layout. */
void head_profile_turn(struct head *h);
/* The newest turn ends the stretch of this checkpoint of the report. */
void head_profile_of_checkpoint(struct head *h, uint64_t number);
void head_profile_looked(struct head *h, uint32_t look, const struct profile *p, uint64_t progress);
void head_profile_end(struct head *h); /* the last look has come: into --profile's file */
void head_profile_fini(struct head *h);

#endif
