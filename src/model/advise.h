/* SPDX-License-Identifier: BSD-3-Clause */
/* The advisor: which scheme of protection costs a program least on a machine, by the closed
 * formulas of model/ and by what was measured of the program. docs/advisor.md says what is assumed.
 *
 * A number that was measured is known within limits. So that the answer says how sure it is, every
 * scheme is worked out for many values drawn within them, with the scheme's own settings (its
 * interval) kept: what the program would be run with.
 */
#ifndef HALE_MODEL_ADVISE_H
#define HALE_MODEL_ADVISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"
#include "model/law.h"

/* How a number is known. */
enum advise_source {
	ADVISE_UNKNOWN,
	ADVISE_MEASURED, /* several times: low and high are its mean's 95 % limits */
	ADVISE_ONCE,	 /* measured once: taken to be right within a factor of 1.5 */
	ADVISE_ASSUMED,	 /* somewhere between low and high */
	ADVISE_GIVEN,	 /* by the user: exact */
};

struct advise_known {
	double value, low, high;
	enum advise_source source;
};

/* A kind of checkpoint. */
struct advise_checkpoint {
	uint64_t count;
	double bytes, pause_s;
	struct advise_known cost_s;  /* time that one takes from the program */
	struct advise_known write_s; /* from its beginning until it can be gone back to */
};

/* What was measured of a run (the profile of report/profile.h). */
struct advise_measure {
	uint32_t ranks;
	double wall_s, app_s; /* app_s: of one rank, in the mean */
	double alpha, alpha_least, alpha_most, f_send, f_recv;
	struct advise_known beta;
	double message_bytes_hz; /* sent by one rank, in the mean */
	struct advise_checkpoint full, incremental;
	struct advise_known restart_s;
	/* Of a run with --tasks: the share of errors that tasks mend, and the share of the tasks'
	 * time that copies and logs take. 0: no such run. */
	double coverage, task_waste;
};

/* From a profile, or a report with a profile in it. HALE_ERR_ARGUMENT with a sentence. */
hale_status_t advise_measure_read(const struct json_value *v, struct advise_measure *m,
				  struct error *err);
/* Numbers that the user gives take the place of measured ones; NAN: not given. */
void advise_measure_override(struct advise_measure *m, double ckpt_cost_s, double restart_s);

struct advise_machine {
	double nodes;		/* that the program runs on */
	struct model_law fails; /* of one node */
	double work_s;		/* the program's time without failures and protection */
	double node_w;		/* of one node at work */
	double static_part;	/* of that, when it does nothing */
	double power_limit_w;	/* INFINITY: none */
	double coverage;	/* share of failures that task re-execution mends; 0: no tasks */
	double task_waste;	/* what task re-execution costs, part of the time */
};

struct advise_range {
	double value, low, high; /* INFINITY: it never ends */
};

enum { ADVISE_FLAGS_MAX = 160, ADVISE_NEEDS_MAX = 4, ADVISE_CHOICES_MAX = 16 };

/* One scheme, worked out. */
struct advise_choice {
	const char *name;		     /* "checkpoints", "2x+clone" … */
	char flags[ADVISE_FLAGS_MAX];	     /* of hale run, without -n and program; "": none */
	const char *needs[ADVISE_NEEDS_MAX]; /* options among them that must exist; NULL-terminated
					      */
	double interval_s;		     /* work between two checkpoints; 0: none are taken */
	double young_s, daly_s;		     /* for comparison; 0: no checkpoints */
	double shadow_speed;		     /* 0: no shadows */
	double partial;			     /* share of the ranks with replicas; 0: all, or none */
	double nodes;			     /* that it holds, replicas included */
	double failures;		     /* expected, of those */
	struct advise_range time_s, loss, energy_j; /* loss: time / work_s - 1 */
	bool over_power;
	bool unsure;   /* by more than a tenth of its time */
	char why[200]; /* it can't be had: "": it can */
};

/* All schemes, best first: those that end and stay within the power limit by expected time (or
 * energy), then the others. */
hale_status_t advise_choose(const struct advise_measure *m, const struct advise_machine *machine,
			    bool by_energy, struct advise_choice choices[ADVISE_CHOICES_MAX],
			    size_t *count, struct error *err);

/* What finds wrong bits that no machine notices, beside what failures ask for. */
struct advise_silent {
	const char *name;
	char flags[ADVISE_FLAGS_MAX]; /* of hale run */
	double cost;		      /* share more of nodes x time, by best guesses */
	double found_s; /* a node that is wrong all the time is named after so long at most;
			 * 0: with the next message; INFINITY: no node is named */
	bool corrects;	/* messages that are wrong are put right */
};
enum { ADVISE_SILENT = 3 };

/* An audit whose visits stand still for half a percent of their time, two replicas, three. */
void advise_silent(const struct advise_measure *m, struct advise_silent choices[ADVISE_SILENT]);

/* A choice played out by the simulator (sim.h) with the best guesses of what was measured. */
struct advise_simulated {
	struct advise_range time_s; /* mean and its 95 % limits */
	double p95_s;		    /* one run in twenty takes longer */
	uint32_t runs;		    /* 0: the simulator has no such scheme, or it never ended */
};
hale_status_t advise_simulate(const struct advise_measure *m, const struct advise_machine *machine,
			      const struct advise_choice *c, uint32_t runs,
			      struct advise_simulated *out, struct error *err);

/* Expected wall time of work_s with checkpoints as Hale takes them: begun every every_s by the
 * clock, each taking cost_s from the program and whole after write_s; a failure costs what was done
 * since the last whole one, and restart_s. INFINITY where it exceeds what doubles hold. */
hale_status_t advise_checkpointed_s(double work_s, double every_s, double cost_s, double write_s,
				    double restart_s, double mtbf_s, double *wall_s,
				    struct error *err);

/* The same run with failures at given times (by the clock, ascending, INFINITY-terminated), played
 * out. Those that strike during a restart count. */
double advise_played_s(double work_s, double every_s, double cost_s, double write_s,
		       double restart_s, const double *failures);

/* A time as options take it: "22min", "45s", "1.5h", "800ms"; two digits, and its value. */
double advise_round_s(double seconds, char text[16]);

#endif
