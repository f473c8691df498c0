/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a job works until its next checkpoint, where nobody has said how often one is wanted
 * (`--ckpt-every auto`). Young's and Daly's interval, from what checkpoints have cost this job and
 * how often it fails; never so often that they cost more than a given share of the run time. */
#ifndef HALE_POLICY_CADENCE_H
#define HALE_POLICY_CADENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Assumed where nobody has given a rate: a job fails once a day whatever it runs on, and a node of
 * it once in five years. */
#define CADENCE_JOB_MTBF_S  86400.0
#define CADENCE_NODE_MTBF_S (5 * 365.25 * 86400)

/* Of the time between two checkpoints at most this share goes by while one is being written. */
#define CADENCE_WRITING 0.1

/* What is known of tasks that are executed again after memory errors (`--tasks`): such errors cost
 * no checkpoint, so checkpoints may be rarer (seed 002, eq. 18). */
struct cadence_tasks {
	double memory;	       /* share of the failures of a job like this that are memory errors */
	uint64_t mended, fell; /* errors that tasks have mended; that rolled the job back */
	double protected_s,
	    exposed_s; /* of the time that an error can strike, in protected tasks */
};

/* The share of memory errors that tasks mend: what the time in protected tasks makes one expect
 * counts as one error, and the errors seen come to it. 0 to below 1. */
double cadence_coverage(const struct cadence_tasks *t);

struct cadence_view {
	double pause_s;	  /* that ranks stand still for a checkpoint */
	double writing_s; /* until it is complete, since it began */
	double cost_s;	  /* that the program has lost by one, measured; < 0: it was not */
	uint32_t ranks, cores;
	double overhead; /* the largest share of the run time that checkpoints may cost; > 0 */
	double least_s;	 /* no interval is shorter */
	double mtbf_s;	 /* of the whole job, given by the user; 0: not given */
	uint32_t nodes;	 /* that the job runs on */
	uint64_t past_failures;	  /* of the user's earlier jobs, in … */
	double past_node_seconds; /* … this time of nodes; without mtbf_s */
	uint32_t failures;	  /* that this job has had, in … */
	double run_s;		  /* … this time */
	double covered; /* share of failures that cost no rollback: memory × coverage; 0: none */
};

typedef enum cadence_reason {
	CADENCE_BEST,	  /* the interval that loses least time */
	CADENCE_OVERHEAD, /* it is longer, as checkpoints would cost more than they may */
	CADENCE_DISK,	  /* it is longer, as images would be written nearly all the time */
	CADENCE_LEAST,	  /* it is the shortest that is allowed */
	CADENCE_REASONS
} cadence_reason_t;

struct cadence {
	double interval_s; /* from the end of a checkpoint to the begin of the next */
	double cost_s;	   /* of one, as taken for it */
	double mtbf_s;	   /* likewise */
	cadence_reason_t reason;
};

/* What one checkpoint takes from the program: the measured loss if there is one, otherwise the
 * pause and the share of the cores that the processes take that write. */
double cadence_cost_s(const struct cadence_view *v);

/* Mean time between failures: the given or assumed one counts as one failure seen in that time, and
 * what earlier jobs and this one have seen comes to it. Of the former the part that is covered is
 * no failure; the latter are those that did cost a rollback. */
double cadence_mtbf_s(const struct cadence_view *v);

struct cadence cadence_next(const struct cadence_view *v);

/* After so many attempts in a row that came to nothing. */
double cadence_retry_s(double least_s, uint32_t attempts);

#endif
