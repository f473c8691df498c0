/* SPDX-License-Identifier: BSD-3-Clause */
/* Shadowed sets (seed 003, 2.2 and 2.6): S mains, each on a core of its own, and one core on which
 * the S shadows of these mains run. A domain is what fails as a whole: a core, a socket, a node.
 *
 *   set 0: M0  M1      set 1: M2  M3         S = 2; four domains of six cores each (figure 3)
 *          S(0,1)             S(2,3)
 *
 * A layout says in which domain each main and each shadow lives; how well that isolates them is a
 * property of the result, and the caller decides what is enough. No I/O, no clock. */
#ifndef HALE_POLICY_SHADOWS_H
#define HALE_POLICY_SHADOWS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "node/living.h"

typedef enum shadow_mapping {
	SHADOW_MIXED, /* every domain has mains and shadows of others (figure 3) */
	SHADOW_APART, /* some domains have nothing but shadows (figure 4) */
} shadow_mapping_t;

typedef enum shadow_isolation {
	SHADOW_TOGETHER, /* some domain has a main and its own shadow: both are lost with it */
	SHADOW_PAIRS,	 /* none has; but a domain may have several cores of one set */
	SHADOW_SETS, /* a domain has one core of a set at most: whichever fails, each set lives on
		      */
} shadow_isolation_t;

struct shadow_layout {
	uint32_t nranks, size; /* mains; of a set, at the beginning (S) */
	uint32_t domains;
	uint32_t *set_of;    /* [nranks] rank -> set; sets are numbered from 0 */
	uint32_t *main_on;   /* [nranks] domain of the main */
	uint32_t *shadow_on; /* [nranks] of its shadow: the same for all ranks of a set */
	shadow_isolation_t isolation;
};

/* Sets are ranks in a row. cores: of each domain, 0: as many as are needed. Prefers a layout that
 * isolates sets; where domains are too few for that, pairs; with one domain all are together.
 * HALE_ERR_ARGUMENT with a sentence: S is more than the ranks, or the cores don't suffice. */
hale_status_t shadow_layout_make(struct shadow_layout *l, uint32_t nranks, uint32_t size,
				 uint32_t domains, uint32_t cores, shadow_mapping_t mapping,
				 struct error *err);
void shadow_layout_fini(struct shadow_layout *l);

uint32_t shadow_set_count(const struct shadow_layout *l);
/* Mains in that set. */
uint32_t shadow_set_size(const struct shadow_layout *l, uint32_t set);
/* Cores that N mains in sets of S need: N + N / S. */
uint32_t shadow_cores(uint32_t nranks, uint32_t size);
/* The share of a core that a shadow may use, in thousandths, where mains and cores of shadows,
 * `wanted` in all, have so many cores. If they suffice shadows are slow by sharing one: 0. With
 * fewer each has a smaller share, of which a shadow takes what it would of a core that it shares.
 */
uint32_t shadow_rate(uint32_t wanted, uint32_t size, uint32_t cores);

/* The weight of each of so many shadows of which each is to have `rate` thousandths of a core, where
 * `mains` of weight `unit` want all cores, too. */
uint32_t shadow_weight(uint32_t unit, uint32_t mains, uint32_t shadows, uint32_t rate,
		       uint32_t cores);

/* Seconds in which a shadow at full speed does what its main has done beside it in `since` seconds,
 * when it has used `rate` of a core: (1 - sigma) t_f (seed 003, 2.4). */
double shadow_catch_up(double since, double rate);
/* While all others wait so long for a promoted shadow theirs jump, which makes all stand still for
 * `pause`: only where that is short against the wait. */
bool shadow_jump_pays(double wait, double pause);

/* Seconds after a jump in which its shadow does not jump again: so whoever stood still for `pause` does
 * for a tenth of the time at most, and half the time nothing is sent for jumps, which took `seconds`.
 */
double shadow_jump_rest(double pause, double seconds);
/* Catching up takes longer than going back: `lost` seconds of work since the newest checkpoint,
 * which all ranks do again at full speed, and `restart` until they run. */
bool shadow_rollback_is_shorter(double wait, double lost, double restart);

/* ---- what a view means for sets; the lowest slot of a rank that lives is its main ----
 */

/* Rank has no shadow any more, or no main that one could stand in for. */
bool shadow_is_lacking(const struct living *v, uint32_t rank);
/* Another failure in that set may not be survived. */
bool shadow_set_is_vulnerable(const struct shadow_layout *l, const struct living *v, uint32_t set);
/* The main of `rank` has just died, and v says so. Which process, a shadow of another rank of the
 * set, must stop so that the promoted one has the core for itself? The first from `from` on;
 * nranks * degree: none. */
uint32_t shadow_stops(const struct shadow_layout *l, const struct living *v, uint32_t rank,
		      uint32_t from);

/* Rejuvenation after permanent failures (figure 6): ranks of vulnerable sets join other sets, so
 * that each has a shadow again, on a core that others' shadows have already. main_on says where
 * mains live now. A rank goes to the smallest set whose shadows live in another domain than its
 * main. False: some rank finds none, and nothing is changed. */
bool shadow_sets_merge(struct shadow_layout *l, const struct living *v);

#endif
