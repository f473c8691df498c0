// SPDX-License-Identifier: BSD-3-Clause
#include "policy/shadows.h"

#include <stdlib.h>
#include <string.h>

uint32_t shadow_cores(uint32_t nranks, uint32_t size)
{
	return nranks + (nranks + size - 1) / size;
}

uint32_t shadow_rate(uint32_t wanted, uint32_t size, uint32_t cores)
{
	uint32_t rate = 1000 * cores / wanted / size;

	return cores >= wanted ? 0 : rate > 0 ? rate : 1;
}

uint32_t shadow_weight(uint32_t unit, uint32_t mains, uint32_t shadows, uint32_t rate,
		       uint32_t cores)
{
	double one = rate * 1e-3 / cores, left = 1 - one * shadows;
	double weight = unit * (mains > 0 ? mains : 1) * one / (left > 0.05 ? left : 0.05);

	return weight > 1 ? (uint32_t)(weight + 0.5) : 1;
}

uint32_t shadow_set_count(const struct shadow_layout *l)
{
	uint32_t count = 0;

	for (uint32_t set = 0; set < l->nranks; set++)
		count += shadow_set_size(l, set) > 0;
	return count;
}

uint32_t shadow_set_size(const struct shadow_layout *l, uint32_t set)
{
	uint32_t n = 0;

	for (uint32_t r = 0; r < l->nranks; r++)
		n += l->set_of[r] == set;
	return n;
}

/* ---- layouts ---- */

static void layout_judge(struct shadow_layout *l)
{
	l->isolation = SHADOW_SETS;
	for (uint32_t a = 0; a < l->nranks; a++) {
		if (l->main_on[a] == l->shadow_on[a]) {
			l->isolation = SHADOW_TOGETHER;
			return;
		}
		for (uint32_t b = a + 1; b < l->nranks; b++)
			if (l->set_of[b] == l->set_of[a] && l->main_on[a] == l->main_on[b])
				l->isolation = SHADOW_PAIRS;
	}
}

/* Figure 4: domain j of a group of S + 1 has main j of each set of the group, the last one has all
 * shadows. Fewer domains: the last one has shadows, the others share the mains. */
static void lay_apart(struct shadow_layout *l, uint32_t sets)
{
	uint32_t per_group = l->size + 1 < l->domains ? l->size + 1 : l->domains;
	uint32_t groups = l->domains / per_group;

	for (uint32_t r = 0; r < l->nranks; r++) {
		uint32_t group = l->set_of[r] * groups / sets, member = r % l->size;

		l->shadow_on[r] = group * per_group + per_group - 1;
		l->main_on[r] = per_group > 1 ? group * per_group + member % (per_group - 1) : 0;
	}
}

/* Figure 3: domains in groups of S; main j of a set is in domain j of one group, and the shadows of
 * a group's sets are dealt out, in rows, to the domains of the next group. Fewer than two groups:
 * as many groups as there can be, of smaller size; then mains of a set share domains. */
static void lay_mixed(struct shadow_layout *l, uint32_t sets)
{
	uint32_t width = l->size, groups;

	while (width > 1 && l->domains / width < 2)
		width--;
	groups = l->domains / width;
	if (groups > sets)
		groups = sets;
	for (uint32_t r = 0; r < l->nranks; r++) {
		uint32_t set = l->set_of[r], group = set * groups / sets;
		uint32_t first = (group * sets + groups - 1) / groups; /* set of this group */
		uint32_t last = ((group + 1) * sets + groups - 1) / groups;
		uint32_t turn = (set - first) * width / (last - first);

		l->main_on[r] = group * width + r % l->size % width;
		l->shadow_on[r] = groups > 1	   ? (group + 1) % groups * width + turn
				  : l->domains > 1 ? width
						   : 0;
	}
}

static hale_status_t layout_check(const struct shadow_layout *l, uint32_t cores, struct error *err)
{
	for (uint32_t d = 0; cores > 0 && d < l->domains; d++) {
		uint32_t used = 0, set = UINT32_MAX;

		for (uint32_t r = 0; r < l->nranks; r++) {
			used += l->main_on[r] == d;
			used += l->shadow_on[r] == d && l->set_of[r] != set;
			set = l->set_of[r];
		}
		if (used > cores)
			return error_set(
			    err, HALE_ERR_ARGUMENT,
			    "%u ranks in shadowed sets of %u need %u cores, and %u of them in "
			    "one place that has %u; use more nodes, fewer ranks, or a larger "
			    "--shadows",
			    l->nranks, l->size, shadow_cores(l->nranks, l->size), used, cores);
	}
	return HALE_OK;
}

hale_status_t shadow_layout_make(struct shadow_layout *l, uint32_t nranks, uint32_t size,
				 uint32_t domains, uint32_t cores, shadow_mapping_t mapping,
				 struct error *err)
{
	uint32_t sets;
	hale_status_t status;

	*l = (struct shadow_layout){.nranks = nranks, .size = size, .domains = domains};
	if (size == 0 || size > nranks)
		return error_set(
		    err, HALE_ERR_ARGUMENT,
		    "--shadows %u: a set of so many mains can't be made of %u rank%s; at "
		    "most %u shadows can share a core",
		    size, nranks, nranks > 1 ? "s" : "", nranks);
	sets = (nranks + size - 1) / size;
	l->set_of = calloc(nranks, sizeof(*l->set_of));
	l->main_on = calloc(nranks, sizeof(*l->main_on));
	l->shadow_on = calloc(nranks, sizeof(*l->shadow_on));
	if (!l->set_of || !l->main_on || !l->shadow_on) {
		shadow_layout_fini(l);
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u ranks", nranks);
	}
	for (uint32_t r = 0; r < nranks; r++)
		l->set_of[r] = r / size;
	if (mapping == SHADOW_APART)
		lay_apart(l, sets);
	else
		lay_mixed(l, sets);
	layout_judge(l);
	status = layout_check(l, cores, err);
	if (status != HALE_OK)
		shadow_layout_fini(l);
	return status;
}

void shadow_layout_fini(struct shadow_layout *l)
{
	free(l->set_of);
	free(l->main_on);
	free(l->shadow_on);
	l->set_of = l->main_on = l->shadow_on = NULL;
}

double shadow_catch_up(double since, double rate)
{
	return rate < 1 ? (1 - rate) * since : 0;
}

bool shadow_jump_pays(double wait, double pause)
{
	enum { TIMES = 4 };

	return wait > TIMES * pause;
}

double shadow_jump_rest(double pause, double seconds)
{
	enum { TIMES = 9 };

	return TIMES * pause > seconds ? TIMES * pause : seconds;
}

bool shadow_rollback_is_shorter(double wait, double lost, double restart)
{
	return wait > lost + restart;
}

/* ---- views ---- */

bool shadow_is_lacking(const struct living *v, uint32_t rank)
{
	return living_count(v, rank) < 2;
}

bool shadow_set_is_vulnerable(const struct shadow_layout *l, const struct living *v, uint32_t set)
{
	for (uint32_t r = 0; r < l->nranks; r++)
		if (l->set_of[r] == set && shadow_is_lacking(v, r))
			return true;
	return false;
}

uint32_t shadow_stops(const struct shadow_layout *l, const struct living *v, uint32_t rank,
		      uint32_t from)
{
	for (uint32_t p = from; p < v->nranks * v->degree; p++) {
		uint32_t r = living_rank_of(p, v->nranks), slot = living_slot_of(p, v->nranks);

		if (r != rank && l->set_of[r] == l->set_of[rank] && living_lives(v, r, slot) &&
		    living_leader(v, r) != (int)slot)
			return p;
	}
	return v->nranks * v->degree;
}

static bool set_takes(const struct shadow_layout *l, const unsigned char *vulnerable, uint32_t set,
		      uint32_t main_on)
{
	if (vulnerable[set])
		return false;
	for (uint32_t r = 0; r < l->nranks; r++)
		if (l->set_of[r] == set && l->shadow_on[r] == main_on)
			return false;
	return shadow_set_size(l, set) > 0;
}

/* nranks: none. */
static uint32_t set_for(const struct shadow_layout *l, const unsigned char *vulnerable,
			uint32_t main_on)
{
	uint32_t best = l->nranks, best_size = 0;

	for (uint32_t set = 0; set < l->nranks; set++) {
		uint32_t size = shadow_set_size(l, set);

		if (set_takes(l, vulnerable, set, main_on) &&
		    (best == l->nranks || size < best_size)) {
			best = set;
			best_size = size;
		}
	}
	return best;
}

bool shadow_sets_merge(struct shadow_layout *l, const struct living *v)
{
	uint32_t n = l->nranks;
	unsigned char *vulnerable = calloc(n, 1);
	uint32_t *sets = malloc(n * sizeof(*sets)), *shadows = malloc(n * sizeof(*shadows));
	bool done = vulnerable && sets && shadows;

	if (done) {
		memcpy(sets, l->set_of, n * sizeof(*sets));
		memcpy(shadows, l->shadow_on, n * sizeof(*shadows));
		for (uint32_t set = 0; set < n; set++)
			vulnerable[set] = shadow_set_is_vulnerable(l, v, set);
	}
	for (uint32_t r = 0; done && r < n; r++) {
		uint32_t to;

		if (!vulnerable[sets[r]])
			continue;
		to = set_for(l, vulnerable, l->main_on[r]);
		done = to < n;
		for (uint32_t q = 0; done && q < n; q++)
			if (l->set_of[q] == to && !vulnerable[sets[q]])
				l->shadow_on[r] = l->shadow_on[q];
		if (done)
			l->set_of[r] = to;
	}
	if (!done && sets && shadows) {
		memcpy(l->set_of, sets, n * sizeof(*sets));
		memcpy(l->shadow_on, shadows, n * sizeof(*shadows));
	}
	layout_judge(l);
	free(vulnerable);
	free(sets);
	free(shadows);
	return done;
}
