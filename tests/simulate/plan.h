/* SPDX-License-Identifier: BSD-3-Clause */
/* One schedule: the job (world.c), its faults (faults.c), and what is seen of it (judge.c). */
#ifndef HALE_SIMULATE_PLAN_H
#define HALE_SIMULATE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { RANKS_MAX = 16, FAULTS_MAX = 8, ARGS_MAX = 64 };

enum fault_kind {
	KILL_RANK,
	KILL_AGENT,
	KILL_SUPERVISOR,
	KILL_AGENT_AND_SUPERVISOR,
	STALL_RANK,
	STOP_AGENT,
	STOP_SUPERVISOR,
	STOP_HEAD,
	CUT_BOTH,
	CUT_TO_HEAD,
	CUT_FROM_HEAD,
	NO_LOGIN,
	LOSE_HOST,
	FILL_DISK,
	KILL_HEAD,
	FOLLOW_HEAD,
	REPLACE_HEAD,
	/* Schedules of `--kinds` and `--no-swarm` draw from the ones above, unless they name one of
	 * these: the seeds of tests stay the same schedules. */
	DAMAGE_IMAGE,
	HANG_REBUILD,
	FAULT_KINDS,
	PLAIN_KINDS = DAMAGE_IMAGE
};

/* What a fault may follow: rollbacks, takeovers and checkpoints last a moment, and a fault at any
 * time would hardly ever fall into one. */
enum moment {
	AT_ANY_TIME,
	AT_FAULT,      /* the fault before this one */
	AT_LOSS,       /* the head says that a node is lost */
	AT_CLEARING,   /* the head says that the job goes back */
	AT_RESTORING,  /* the first process begins to become an image */
	AT_BACK,       /* the first of these runs */
	AT_CHECKPOINT, /* a rank begins its image */
	AT_COMMIT,     /* a checkpoint is complete */
	AT_TAKEOVER,   /* another head begins */
	MOMENTS
};

struct happening {
	enum fault_kind kind;
	enum moment after;
	uint32_t nth;	/* such moment counts */
	uint64_t delay; /* from then on */
	uint64_t lasts;
	uint32_t victim; /* rank or host */
	bool inside;	 /* what is killed is killed at one of its next calls, not while it waits */
	uint64_t at;	 /* 0: its moment has not come */
	bool begun, ended;
};

struct plan {
	bool swarm; /* its faults are of few kinds, after few moments */
	uint32_t hosts, spares, ranks;
	long steps;
	unsigned pace;	  /* a step takes up to that, µs */
	bool coupled;	  /* a rank's step waits for the ones before it of all ranks */
	double slow_back; /* probability that becoming an image takes its time */
	double every, timeout;
	bool grace;
	struct happening faults[FAULTS_MAX];
	size_t fault_count;
	char *argv[ARGS_MAX];
	int argc;
};

extern struct plan plan;

/* ---- heads (world.c) ---- */

/* The newest one, its exit status or -1 */
extern pid_t head;
extern int exit_status;

/* `hale attach` begins; the head before it may be there, or not. */
void world_attach(void);
bool world_job_over(void);

/* ---- faults (faults.c) ---- */

void faults_draw(void);
/* Whether this schedule's faults are of few kinds that are drawn first: two that have to meet do so
 * far more often than where all kinds are drawn from each time. */
bool faults_draw_swarm(void);
/* The time of the next turn of a fault: its beginning or its end; NS_NEVER: none is known. */
uint64_t faults_next(void);
/* The turns that are due. */
void faults_turn(void);
/* Some have begun and go on. */
bool faults_last(void);
/* An image was damaged, or hung as it was rebuilt: checkpoints may be refused. */
bool faults_may_refuse(void);
/* That process, which becomes an image, never gets on. */
bool faults_hang(void);
/* How many have begun, and whether all of them were such that a job can always go on after them. */
uint32_t faults_begun(bool *harmless);
/* That moment is now. */
void faults_moment(enum moment m);
/* Until then that rank does nothing. */
uint64_t faults_stalled(int64_t rank);

/* ---- what must hold (judge.c) ---- */

void judge_begin(void);
void judge_output(const void *bytes, size_t len);
void judge_says(const char *text, size_t len);
uint32_t judge_newest_complete(void);
void judge_file(const char *path, const char *what);
void judge_end(void);

#endif
