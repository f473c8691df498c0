/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two files of a migration share: migrate.c, how it begins and ends; migrate_rounds.c,
 * what happens in between. */
#ifndef HALE_JOB_MIGRATE_PRIVATE_H
#define HALE_JOB_MIGRATE_PRIVATE_H

#include "image/live.h"
#include "job/migrate.h"

enum { MIGRATE_STEPS_MAX = 32 };

enum migration_phase {
	WAITING,
	CHECKING,
	PREPARING,
	AHEAD,
	STOPPING,
	GOING,
	RELEASING,
	CANCELLING
};

struct mover {
	bool moves;
	bool begun;    /* its copy is started */
	char *program; /* that it executes; NULL: the job's */
	bool running;  /* a round is under way */
	bool small;    /* what is left is little, as of its newest round */
	bool again;    /* that was long ago: one more round */
	unsigned held; /* as live_bounds.held, with the round to come */
	uint32_t held_rounds;
	double began; /* its newest round */
	double rest;  /* seconds that a last round would have taken when it became small */
	bool whole;   /* the copy has said HELLO */
	bool moved;   /* the source has ended */
	bool stopped, resumed;
	uint32_t id; /* of its newest round */
	pid_t copy;
	uint64_t position[3];
	struct live_step step[MIGRATE_STEPS_MAX];
	size_t steps;
};

struct migration {
	enum migration_phase phase;
	uint32_t from, to; /* to == from: anywhere */
	char target[256];  /* for sentences */
	char *folder;	   /* for files; NULL: streams */
	uint32_t generation, stop_id, ranks;
	uint32_t *coming; /* [nranks] */
	struct mover *movers;
	unsigned freshened; /* times that those that waited for others had one more round */
	bool *awaited;	    /* [nodes]: an answer is outstanding */
	struct places {
		void *bytes;
		size_t len;
	} * places; /* [nodes]: where they listen for streams; the agents' own words */
	double began, moved_at, stopped_at;
	double doomed_at; /* a copy has ended: given up at the latest then; 0: none has */
	uint64_t bytes, relayed, stopped;
	char why[512];
	struct loop_timer timer;
};

/* migrate.c */
bool migrate_all_answered(const struct head *h);
void migrate_cancelled(struct head *h); /* … by all: then the ranks go on */
void migrate_done(struct head *h);	/* all ranks run where they are to */

#endif
