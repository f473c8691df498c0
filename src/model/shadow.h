/* SPDX-License-Identifier: BSD-3-Clause */
/* Lazy shadows: each main has a replica that runs slower, and at full speed once the main is lost
 * (003 2.1, 2.2, 2.7). Speeds are parts of the full speed, powers parts of a socket's power at full
 * speed: a socket at speed σ draws static + (1 - static) σ^exponent. */
#ifndef HALE_MODEL_SHADOW_H
#define HALE_MODEL_SHADOW_H

#include "base/error.h"
#include "model/law.h"

struct model_shadow {
	struct model_law law; /* of one socket */
	double work_s;	      /* W: one task's work at full speed */
	double pairs;	      /* N: tasks, each with a shadow; the job ends with the last */
	double main_speed;    /* σ_m in (0, 1] */
	double shadow_speed;  /* σ_s in [0, σ_m] */
	double after_speed;   /* σ_a in (0, 1]: of the shadow once its main is lost */
	double static_part;   /* ρ: static power, part of the whole at full speed, [0, 1] */
	double exponent;      /* of dynamic power in speed; 2 … 3 */
	double socket_w;      /* of one socket at full speed */
};

struct model_shadow_result {
	double done_s;		/* t_m: end of a main that doesn't fail */
	double worst_s;		/* end of a shadow whose main fails at its very end */
	double pair_time_s;	/* expected completion of one pair */
	double expected_time_s; /* expected completion of all pairs */
	double pair_energy_j;	/* 003 eq. 5: of one pair, each stopping when it is done */
	/* of all: as eq. 5, and all that still run draw static power until the last is done */
	double expected_energy_j;
};
hale_status_t model_shadow(const struct model_shadow *in, struct model_shadow_result *out,
			   struct error *err);

enum model_goal {
	MODEL_GOAL_PAIR_ENERGY,	 /* least pair_energy_j: what 003 minimises */
	MODEL_GOAL_ENERGY,	 /* least expected_energy_j */
	MODEL_GOAL_TIME,	 /* least expected_time_s */
	MODEL_GOAL_ENERGY_DELAY, /* least product of the two */
};
/* The shadow speed σ_s in [0, min(σ_m, σ_a)] that serves the goal best; in->shadow_speed is
 * ignored. */
hale_status_t model_shadow_best_speed(const struct model_shadow *in, enum model_goal goal,
				      double *shadow_speed, struct error *err);

/* Collocation: per_core S shadows on one core run at S^-pressure each: pressure 1 if they merely
 * share it, 1.5 where they press each other out of the caches too (003 2.2). */
hale_status_t model_shadow_collocated(double per_core, double pressure, double *shadow_speed,
				      struct error *err);

/* Sockets that a power budget feeds: pairs of a main at σ_m and a shadow at σ_s. */
struct model_budget {
	double power_w, socket_w, static_part, exponent;
	double main_speed, shadow_speed;
};
struct model_budget_result {
	double plain_sockets; /* without replicas, at full speed */
	double sockets, main_sockets;
};
hale_status_t model_budget(const struct model_budget *in, struct model_budget_result *out,
			   struct error *err);

/* Bytes per second by which a main's message log grows for its shadow: (1 - σ_s/σ_m) of what it
 * receives; and the time until a buffer of that size makes the shadow jump (003 2.4, 2.5). */
hale_status_t model_shadow_log(double message_rate, double shadow_speed, double main_speed,
			       double buffer_bytes, double *growth, double *full_s,
			       struct error *err);

#endif
