/* SPDX-License-Identifier: BSD-3-Clause */
/* Task-level re-execution under system-wide checkpoints, in one model (002 section 7). */
#ifndef HALE_MODEL_UNIFIED_H
#define HALE_MODEL_UNIFIED_H

#include <stdint.h>
#include "base/error.h"

/* Rates of the task level, 002 eq. 7-11: seconds spent per second of run, summed over tasks. */
struct model_task_level {
	double overlap; /* α: share that shows in wall time; 0 hidden wholly, 1 not at all */
	double ckpt, rework, no_send, restart, log; /* rework and restart per failure per second */
};
/* W_TL = α (chk + μ (rew - noSend) + μ res + log). */
hale_status_t model_task_waste(const struct model_task_level *in, double due_rate_hz,
			       double *fraction, struct error *err);

struct model_unified {
	double ckpt_s;	    /* c_s */
	double restart_s;   /* r_s, down time included */
	double due_rate_hz; /* μ_s: detected uncorrected errors of the job */
	double coverage;    /* CovTL: share of them that tasks recover from; 1 is allowed */
	double task_waste;  /* W_TL: share of time that the task level costs */
	double work_s;	    /* T_ff; 0 if you don't want total_s */
};

struct model_unified_result {
	double system_interval_s;  /* τ*_s, eq. 15 */
	double unified_interval_s; /* τ*_unified, eq. 17; INFINITY at full coverage */
	double system_waste;	   /* W_sys(0) at its optimum */
	double unified_waste;	   /* W_TL + W_sys(CovTL) at its optimum, eq. 14 */
	double score;		   /* S, eq. 20: the first less the second */
	double break_even_hz;	   /* the rate from which the score is positive; INFINITY: never */
	double system_total_s;	   /* T_overall, eq. 2: T_ff / (1 - W); INFINITY from W = 1 on */
	double unified_total_s;
};
hale_status_t model_unified(const struct model_unified *in, struct model_unified_result *out,
			    struct error *err);

/* Elasticities of the score, each (∂S/∂p) p: by how much S changes if p grows by 1, in parts of
 * itself. */
struct model_unified_sensitivity {
	double ckpt, restart, due_rate, coverage, task_waste;
};
hale_status_t model_unified_sensitivity(const struct model_unified *in,
					struct model_unified_sensitivity *out, struct error *err);

/* The same run, played out: Weibull arrivals, runs times, from one seed (002 8.4.1). Failures may
 * strike during checkpoints and restarts, which the formula leaves out. work_s > 0. interval_s 0:
 * the best of the formula. */
struct model_played {
	double interval_s;
	double mean_s, half_width_s; /* of the run's time; 95 % confidence */
	double formula_s;	     /* T_ff / (1 - W) at that interval */
	double difference;	     /* (mean - formula) / formula */
	double spread;		     /* mean of |run - formula| / formula */
	double failures;	     /* mean number, covered ones left out */
};
hale_status_t model_unified_play(const struct model_unified *in, double interval_s, double shape,
				 uint32_t runs, uint64_t seed, struct model_played *out,
				 struct error *err);

#endif
