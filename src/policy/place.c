/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy/place.h"

#include <stdlib.h>

void place_share(uint32_t total, uint32_t parts, uint32_t part, uint32_t *first, uint32_t *count)
{
	*first = (uint32_t)((uint64_t)total * part / parts);
	*count = (uint32_t)((uint64_t)total * (part + 1) / parts) - *first;
}

static hale_status_t check(uint32_t nranks, uint32_t *nodes, uint32_t per_node, struct error *err)
{
	if (*nodes == 0)
		*nodes = per_node ? (nranks + per_node - 1) / per_node : 1;
	if (*nodes > nranks)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "%u ranks can't fill %u nodes; ask for fewer with --nodes", nranks,
				 *nodes);
	if (per_node && (uint64_t)per_node * *nodes < nranks)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "%u nodes with %u ranks each are too few for %u ranks; raise "
				 "--nodes or --ppn",
				 *nodes, per_node, nranks);
	if (per_node && (uint64_t)per_node * (*nodes - 1) >= nranks)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "with %u ranks on each, %u ranks leave some of the %u nodes "
				 "empty; lower --nodes or --ppn",
				 per_node, nranks, *nodes);
	return HALE_OK;
}

hale_status_t placement_make(struct placement *p, uint32_t nranks, uint32_t nodes,
			     uint32_t per_node, struct error *err)
{
	hale_status_t status = check(nranks, &nodes, per_node, err);

	*p = (struct placement){0};
	if (status != HALE_OK)
		return status;
	p->nodes = nodes;
	p->node_of = calloc(nranks, sizeof(*p->node_of));
	if (!p->node_of)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u ranks", nranks);
	for (uint32_t r = 0; per_node && r < nranks; r++)
		p->node_of[r] = r / per_node;
	for (uint32_t k = 0; !per_node && k < nodes; k++) {
		uint32_t first, count;

		place_share(nranks, nodes, k, &first, &count);
		for (uint32_t r = first; r < first + count; r++)
			p->node_of[r] = k;
	}
	return HALE_OK;
}

hale_status_t placement_fill(struct placement *p, uint32_t nranks, const struct place_node *nodes,
			     uint32_t count, struct error *err)
{
	uint64_t slots = 0;
	uint32_t rank = 0;

	*p = (struct placement){0};
	for (uint32_t k = 0; k < count; k++)
		slots += nodes[k].spare ? 0 : nodes[k].slots;
	if (slots < nranks)
		return error_set(err, HALE_ERR_ARGUMENT,
				 "the hosts have %lu slots, too few for %u ranks; raise slots=, or "
				 "place ranks with --ppn",
				 (unsigned long)slots, nranks);
	p->node_of = calloc(nranks ? nranks : 1, sizeof(*p->node_of));
	if (!p->node_of)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u ranks", nranks);
	for (uint32_t k = 0; k < count && rank < nranks; k++) {
		for (uint32_t i = 0; !nodes[k].spare && i < nodes[k].slots && rank < nranks; i++)
			p->node_of[rank++] = k;
		p->nodes = k + 1;
	}
	return HALE_OK;
}

hale_status_t placement_extend(struct placement *p, uint32_t nranks, uint32_t more,
			       struct error *err)
{
	uint32_t *node_of = realloc(p->node_of, ((size_t)nranks + more) * sizeof(*node_of));

	if (!node_of)
		return error_set(err, HALE_ERR_MEMORY, "out of memory for %u processes", more);
	p->node_of = node_of;
	for (uint32_t i = 0; i < more; i++)
		node_of[nranks + i] = i % p->nodes;
	return HALE_OK;
}

static uint32_t load_of(const struct placement *p, uint32_t nranks, uint32_t node)
{
	uint32_t load = 0;

	for (uint32_t r = 0; r < nranks; r++)
		load += p->node_of[r] == node;
	return load;
}

static bool may_get_more(const struct place_node *n, bool any)
{
	return !n->lost && (any || !n->unusable);
}

/* The first with room for so many ranks, or the one with the most slots. */
static uint32_t find_spare(const struct place_node *nodes, uint32_t count, uint32_t ranks, bool any)
{
	uint32_t largest = count;

	for (uint32_t k = 0; k < count; k++) {
		if (!nodes[k].spare || !may_get_more(&nodes[k], any))
			continue;
		if (nodes[k].slots == 0 || nodes[k].slots >= ranks)
			return k;
		if (largest == count || nodes[k].slots > nodes[largest].slots)
			largest = k;
	}
	return largest;
}

/* Compares ranks a slot, (load + 1) / slots, without dividing. */
static uint32_t find_least(const struct placement *p, uint32_t nranks,
			   const struct place_node *nodes, uint32_t count, bool any)
{
	uint32_t best = count;
	uint64_t best_load = 0, best_slots = 1;

	for (uint32_t k = 0; k < count; k++) {
		uint64_t slots = nodes[k].slots ? nodes[k].slots : 1, load;

		if (nodes[k].spare || !may_get_more(&nodes[k], any))
			continue;
		load = load_of(p, nranks, k) + 1;
		if (best == count || load * best_slots < best_load * slots) {
			best = k;
			best_load = load;
			best_slots = slots;
		}
	}
	return best;
}

hale_status_t placement_repair(struct placement *p, uint32_t nranks, struct place_node *nodes,
			       uint32_t count, struct error *err)
{
	bool any = true; /* better a node that is not well than none */

	for (uint32_t k = 0; k < count; k++)
		any = any && !may_get_more(&nodes[k], false);
	for (uint32_t lost = 0; lost < count; lost++) {
		uint32_t to, ranks = load_of(p, nranks, lost);

		if (!nodes[lost].lost || ranks == 0)
			continue;
		to = find_spare(nodes, count, ranks, any);
		if (to < count)
			nodes[to].spare = false;
		for (uint32_t r = 0; r < nranks; r++) {
			if (p->node_of[r] != lost)
				continue;
			uint32_t node = to < count ? to : find_least(p, nranks, nodes, count, any);
			if (node == count)
				return error_set(err, HALE_ERR_NODE, "no node is left");
			p->node_of[r] = node;
		}
	}
	return HALE_OK;
}

static bool takes_replica(const struct place_node *n, bool beside)
{
	return !n->lost && !n->unusable && !beside;
}

uint32_t place_replica(const struct place_node *nodes, const uint32_t *there, const bool *beside,
		       uint32_t count, uint32_t died_on)
{
	uint32_t best = count, fullest = 0;

	if (died_on < count && takes_replica(&nodes[died_on], beside[died_on]))
		return died_on;
	for (uint32_t k = 0; k < count; k++) {
		if (nodes[k].spare && takes_replica(&nodes[k], beside[k]))
			return k;
		if (there[k] > fullest)
			fullest = there[k];
	}
	for (uint32_t k = 0; k < count; k++) {
		bool room = nodes[k].slots ? there[k] < nodes[k].slots : there[k] < fullest;

		if (room && takes_replica(&nodes[k], beside[k]) &&
		    (best == count || there[k] < there[best]))
			best = k;
	}
	if (best == count && died_on < count && takes_replica(&nodes[died_on], false))
		return died_on;
	return best;
}

static bool is_among(uint32_t node, const uint32_t *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i] == node)
			return true;
	return false;
}

uint32_t place_apart(const struct place_node *nodes, const uint32_t *there, uint32_t count,
		     const uint32_t *away, uint32_t naway)
{
	uint32_t best = count;
	uint64_t best_slots = 1;

	for (uint32_t k = 0; k < count; k++) {
		uint64_t slots = nodes[k].slots ? nodes[k].slots : 1;

		if (!takes_replica(&nodes[k], is_among(k, away, naway)) ||
		    (best < count && there[k] * best_slots >= there[best] * slots))
			continue;
		best = k;
		best_slots = slots;
	}
	return best < count || naway == 0 ? best
					  : place_apart(nodes, there, count, away, naway - 1);
}

void placement_fini(struct placement *p)
{
	free(p->node_of);
	*p = (struct placement){0};
}
