/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the simulator: what a plan comes down to, and the state of one run. Each thread has a
 * world of its own and plays runs in it one after the other. */
#ifndef HALE_MODEL_SIM_WORLD_H
#define HALE_MODEL_SIM_WORLD_H

#include "model/sim/sim.h"
#include "model/sim/sim_source.h"

/* Derived from a plan once. */
struct sim_setup {
	const struct sim_plan *plan;
	uint32_t ranks;	 /* that the program has: a node each */
	uint32_t groups; /* that live and die together: ranks, or shadowed sets */
	uint32_t slots;	 /* nodes in use */
	uint32_t mains;	 /* of them, before the shadows' */
	double work_s;	 /* with what redundancy and tasks cost */
	double limit_s;
	double every_s[POLICY_LEVELS]; /* 0: unused */
	double speed;		       /* of shadows */
	double shadow_draw;	       /* power of a core of shadows, part of a socket's */
};

enum sim_phase { SIM_WORKING, SIM_SAVING, SIM_STARTING, SIM_WAITING };
enum sim_aim { SIM_AIM_END, SIM_AIM_CKPT, SIM_AIM_JUMP };

struct sim_world {
	const struct sim_setup *setup;
	struct sim_source source;
	struct sim_random cover;
	struct sim_record *record;
	double figure[SIM_FIGURES];

	double now_s;
	enum sim_phase phase;
	double left_s;	/* of the phase, once the job isn't stalled */
	double stall_s; /* before the phase goes on */
	double work_s;	/* done */
	enum sim_aim aim;
	double aim_work_s;
	enum policy_level level; /* of the checkpoint that is due or being taken */

	double saved[POLICY_LEVELS];
	enum policy_level need; /* of levels, for what happened since the last restart began */
	uint32_t *kills;	/* groups lost with their nodes since then */
	size_t kill_count, kill_cap;

	uint8_t *down_in; /* by group: slots that are down */
	/* slots that are down, in the order of their loss, and the same for the policy; they begin
	 * at lost_first of what is allocated, because most leave from the front */
	struct policy_lost *lost, *lost_base;
	uint32_t *lost_slot, *lost_slot_base;
	size_t lost_first, lost_count, lost_cap, lost_soft;

	/* clonings that go on, a ring: each takes equally long, so they end as they began */
	struct sim_cloning {
		double end_s;
		uint32_t slot;
	} * clones;
	size_t clone_first, clone_count, clone_cap;
	size_t clone_paused; /* so many of them already stop the job */

	double replaced, repaired;
	double *repairs; /* when nodes will be repaired: a ring, in order */
	size_t repair_first, repair_count, repair_cap;

	double aligned_s;	 /* work at which all shadows stood where their mains did */
	uint32_t faults;	 /* since the last rejuvenation */
	double lag_max, lag_sum; /* of promoted shadows of loose jobs */
	uint32_t lag_count;
	bool hopeless, no_memory;
};

/* The sum of what setup and plan say; the plan must be good (sim_plan_check). */
void sim_setup_init(struct sim_setup *setup, const struct sim_plan *plan);

bool sim_world_init(struct sim_world *w, const struct sim_setup *setup);
void sim_world_fini(struct sim_world *w);

/* Plays one run; true if it finished. w->figure is then its result. */
bool sim_world_play(struct sim_world *w, uint32_t run, struct sim_record *record);

/* What failures do (sim_react.c): */
void sim_react_failure(struct sim_world *w, const struct sim_strike *strike);
/* The progress of clonings, and repairs that somebody waits for: what is due now, and when the next
 * of them is. */
void sim_react_due(struct sim_world *w);
double sim_react_next_s(const struct sim_world *w);
/* How far the shadows are behind, in seconds of work. */
double sim_react_lag_s(const struct sim_world *w);

#endif
