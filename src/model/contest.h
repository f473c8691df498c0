/* SPDX-License-Identifier: BSD-3-Clause */
/* Shadows against checkpointing, replication and stretched replication on one power budget, for
 * programs that scale perfectly (003 2.7: figure 7, table 4); shadows that jump (003 2.4, 2.5). */
#ifndef HALE_MODEL_CONTEST_H
#define HALE_MODEL_CONTEST_H

#include <stdbool.h>
#include "base/error.h"
#include "model/shadow.h"

enum model_method {
	MODEL_CHECKPOINTING, /* all sockets compute, at full speed */
	MODEL_REPLICATION,   /* pairs at full speed */
	MODEL_STRETCHED,     /* pairs, both at the stretched speed */
	MODEL_SHADOWING,     /* pairs of a main at full speed and a lazy shadow */
	MODEL_METHODS
};

struct model_contest {
	struct model_law law; /* of one socket; checkpointing takes its mean only */
	double work_s;	      /* T_s: of the job on plain_sockets at full speed, without failures */
	double plain_sockets; /* that the budget feeds at full speed without replicas; > 0 */
	double socket_w, static_part, exponent; /* see model_shadow */
	double ckpt_s, restart_s;		/* δ, R */
	double io_part; /* γ: power of a checkpoint or restart, in dynamic power of a socket */
	double stretched_speed; /* of both in MODEL_STRETCHED */
	/* What chooses the shadow's speed: of each pair by itself (as published), or of the whole
	 * job, more pairs for lazier shadows included. Unless shadow_speed is >= 0. */
	enum model_goal goal;
	double shadow_speed;
	bool pairs_alone; /* the published reading: a job takes as long as one pair does on
			     average; else it takes as long as its last pair */
};

struct model_contest_result {
	double sockets, main_sockets;	 /* running, computing; not rounded */
	double main_speed, shadow_speed; /* 0 for checkpointing's shadow */
	double time_s, energy_j;	 /* expected; INFINITY where checkpointing gets nowhere */
};

hale_status_t model_contest(const struct model_contest *in, enum model_method method,
			    struct model_contest_result *out, struct error *err);

/* The number of plain sockets from which on the method beats checkpointing, in time or in energy;
 * HALE_ERR_ARGUMENT if that is not between low and high. */
hale_status_t model_break_even(const struct model_contest *in, enum model_method method,
			       bool energy, double low, double high, double *plain_sockets,
			       struct error *err);

/* Shadows of a program that synchronises all the time: when a main fails, all wait until its shadow
 * has caught up, for (1 - σ_s) of the time since the shadows last had the mains' state; meanwhile
 * all other shadows jump to it. Shadows are made to jump every jump_every_s, if nothing failed. */
struct model_jumping {
	double work_s, pairs;
	double socket_mttf_s; /* exponential */
	double shadow_speed;
	double jump_every_s; /* INFINITY: after failures only */
	double jump_s;	     /* what a forced jump costs */
};
struct model_jumping_result {
	double time_s;	     /* expected */
	double failures;     /* mean number of mains lost */
	double waiting_s;    /* of time_s, for shadows that catch up */
	double jumping_s;    /* of time_s, in forced jumps */
	double best_every_s; /* jump_every_s with the least time, to first order:
				sqrt(2 jump_s / (Λ (1 - σ_s))) */
};
hale_status_t model_jumping(const struct model_jumping *in, struct model_jumping_result *out,
			    struct error *err);

#endif
