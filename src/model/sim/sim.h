/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator: a job of many nodes that fail, under a scheme that protects it, played out event
 * by event, many times. docs/simulator.md says what is modelled and how exact it is.
 *
 * Nothing here does I/O. Times in seconds, powers in watts, energies in joules; shares in [0, 1].
 */
#ifndef HALE_MODEL_SIM_H
#define HALE_MODEL_SIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "model/law.h"
#include "model/sim/sim_policy.h"

/* One failure of a trace. */
struct sim_trace_event {
	double time_s;
	uint32_t node;
	bool soft; /* the process dies, its node stays */
};

struct sim_trace {
	struct sim_trace_event *events; /* sorted by time; owned */
	size_t count;
	double span_s; /* from 0 to the end of the observation; at least the last time */
};

/* How nodes fail. Each place of the job is a renewal process: whoever fills it begins a life of its
 * own, and lives are independent. */
struct sim_failures {
	struct model_law law; /* unused with a trace */
	double age_s;	      /* of all nodes at the start */
	double soft;	      /* share of failures that leave the node as it was */
	bool traced;
	bool random_start; /* each run begins somewhere in the trace, and goes round */
	struct sim_trace trace;
};

/* One level of checkpoints. All zero: not used. */
struct sim_level {
	double used;	/* 1 or 0 */
	double every_s; /* interval of work; 0: the best one */
	double cost_s, restart_s;
};

/* Everything that can be said in --scheme; numbers as they were said. */
struct sim_scheme {
	double degree; /* replicas per rank, 1 … 3; 1.5: every second rank has two */
	double cloning, clone_s, clone_pause_s, at_once; /* at most so many clonings at a time */
	double spares, repair_s;			 /* INFINITY: any number; never repaired */
	double shadows, set_size, speed, pressure;
	double jump, jump_s, log_bytes, log_rate, log_mark;
	double rejuvenate, rejuvenate_s;
	double loose; /* ranks meet at the end only */
	double ideal; /* shadows don't fail, as the closed formula assumes */
	double tasks, coverage, task_waste, rework_s, overlap;
	struct sim_level level[POLICY_LEVELS];
	char text[256];
};

struct sim_job {
	double nodes;	 /* that the program sees; replicas and shadows come on top */
	double work_s;	 /* of the plain program without failures */
	double beta;	 /* see model/redundancy.h */
	double launch_s; /* to start again from the beginning */
	double socket_w, static_part, io_part, exponent;
};

struct sim_plan {
	struct sim_job job;
	struct sim_failures failures;
	struct sim_scheme scheme;
	uint64_t seed;
	uint32_t runs, threads;
	double limit; /* a run that takes so many times work_s never finishes */
};

/* What one run gave, or the means over all. Sums of times make up wall_s. */
enum sim_figure {
	SIM_WALL_S,
	SIM_WORK_S,	/* the program itself, with what redundancy and tasks cost it */
	SIM_CKPT_S,	/* in checkpoints, also those that were never completed */
	SIM_REWORK_S,	/* lost and done again */
	SIM_RESTART_S,	/* starting again */
	SIM_STALL_S,	/* stopped for cloning, for a shadow to catch up, for jumps, for tasks */
	SIM_WAIT_S,	/* no spare node */
	SIM_FAILURES,	/* all that struck a node in use */
	SIM_COVERED,	/* of these: mended by re-executing a task */
	SIM_RESTARTS,	/* of the whole job */
	SIM_CLONES,	/* begun and completed */
	SIM_PROMOTIONS, /* shadows that took over */
	SIM_JUMPS,	/* forced by a full log */
	SIM_REJUVENATIONS,
	SIM_CKPTS,
	SIM_SPARES,	 /* nodes replaced */
	SIM_SPARES_PEAK, /* replaced and not yet repaired, at most */
	SIM_ENERGY_J,
	SIM_FIGURES
};

struct sim_summary {
	double mean[SIM_FIGURES]; /* of the runs that finish, as all others but the quantiles */
	double low_s, high_s;	  /* 95 % confidence interval of the mean wall time */
	double deviation_s;	  /* of one run's wall time */
	double median_s, p95_s;	  /* of one run's wall time; INFINITY: it doesn't finish */
	double loss;		  /* mean wall time / work_s - 1 */
	double energy_low_j, energy_high_j;
	uint32_t runs, finished;
	bool hopeless;	   /* given up after the first few runs, none of which finished */
	uint32_t outlived; /* runs that went on after the end of the trace */
	double every_s[POLICY_LEVELS]; /* the intervals used, work between two */
	double speed;		       /* of shadows */
	uint64_t slots;		       /* nodes that the job holds */
	double events_per_s;
};

/* The failures that struck in the first run, for a trace. */
struct sim_record {
	struct sim_trace_event *events;
	size_t count, cap;
	bool failed; /* no memory */
};

/* Defaults of everything: a plain job of 1 node and 1 day, nodes with an MTTF of 50 years. */
void sim_plan_init(struct sim_plan *plan);
void sim_plan_fini(struct sim_plan *plan);

/* "2x+clone:time=2min+ckpt:cost=5min,every=auto": see docs/simulator.md. A sentence if it can't be
 * read, or if its parts make no sense together. */
hale_status_t sim_scheme_parse(const char *text, struct sim_scheme *scheme, struct error *err);

/* "exp:mttf=50y", "weibull:shape=0.7,mttf=50y,age=2y,soft=30%". For "trace:FILE,start=random" fills
 * all but the trace itself; *file (free it) names it, NULL otherwise. */
hale_status_t sim_failures_parse(const char *text, struct sim_failures *failures, char **file,
				 struct error *err);

/* Lines "time node [hard|soft]", time with a unit or in seconds, # comments, and optionally
 * "span TIME". */
hale_status_t sim_trace_parse(const char *text, size_t len, struct sim_trace *trace,
			      struct error *err);
void sim_trace_fini(struct sim_trace *trace);

/* Whether the whole plan makes sense; sim_run asks, too. */
hale_status_t sim_plan_check(const struct sim_plan *plan, struct error *err);

/* Mean time between failures that a level, or a higher one, must make good: what the automatic
 * interval rests on. First order where no closed form exists; it only sets the interval. */
double sim_mtbf_s(const struct sim_plan *plan, enum policy_level level);

/* Plays all runs. done, if given, counts finished runs while it works; record, if given, gets the
 * failures of the first run. The result is the same to the bit for any number of threads. */
hale_status_t sim_run(const struct sim_plan *plan, struct sim_summary *summary, atomic_uint *done,
		      struct sim_record *record, struct error *err);

#endif
