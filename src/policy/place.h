/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rank lives on which node. Ranks in a row share a node, as mpirun places them. */
#ifndef HALE_JOB_PLACE_H
#define HALE_JOB_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

/* Equal shares: part `part` of `parts` gets [*first, *first + *count) of `total` things. */
void place_share(uint32_t total, uint32_t parts, uint32_t part, uint32_t *first, uint32_t *count);

struct placement {
	uint32_t nodes;	   /* that have ranks */
	uint32_t *node_of; /* [nranks], owned */
};

/* nodes: 0: as many as per_node asks for, or one. per_node: 0: equal shares, the first nodes one
 * more. HALE_ERR_ARGUMENT with a sentence when the ranks don't fit, or a node would have none. */
hale_status_t placement_make(struct placement *p, uint32_t nranks, uint32_t nodes,
			     uint32_t per_node, struct error *err);

/* more processes behind those nranks, dealt out to the same nodes in turn: a reserve, which no
 * slots are counted for. */
hale_status_t placement_extend(struct placement *p, uint32_t nranks, uint32_t more,
			       struct error *err);

/* A node as far as placing is concerned. */
struct place_node {
	uint32_t slots; /* ranks that it is meant for; 0: not said */
	bool spare;	/* has no ranks until another node is lost */
	bool lost;	/* has none any more */
	bool unusable;	/* gets more only when there is no other node */
};

/* Fills nodes that are no spares up to their slots, in order. HALE_ERR_ARGUMENT with a sentence
 * when there are not enough. */
hale_status_t placement_fill(struct placement *p, uint32_t nranks, const struct place_node *nodes,
			     uint32_t count, struct error *err);

/* Moves the ranks of lost nodes: those of one node together onto the first spare with slots for
 * them (slots that are not said are enough; without one, that with the most), which then is none
 * any more; without a spare each to the node that is least loaded for its slots, the first of
 * equals. Ranks of other nodes stay where they are. HALE_ERR_NODE when no node is left. */
hale_status_t placement_repair(struct placement *p, uint32_t nranks, struct place_node *nodes,
			       uint32_t count, struct error *err);
/* Where a dead replica comes back; `there`: living processes of the job on each node; beside: nodes
 * with another replica of its rank, where it goes only if nothing else is left and it died there.
 * Where it died, since its place is free; or the first spare; or the node with fewest processes
 * that has fewer than the fullest one, or a free slot. count: nowhere. */
uint32_t place_replica(const struct place_node *nodes, const uint32_t *there, const bool *beside,
		       uint32_t count, uint32_t died_on);
/* The node with fewest processes for its slots, a spare among them, that is none of away[naway]; if
 * there is none, none of the first naway - 1 of them, and so on. count: no node is usable. */
uint32_t place_apart(const struct place_node *nodes, const uint32_t *there, uint32_t count,
		     const uint32_t *away, uint32_t naway);
void placement_fini(struct placement *p);

#endif
