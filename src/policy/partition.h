/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that can't reach each other although their nodes answer the head: who has said so, for how
 * long, and which nodes are to be taken out (docs/nodes.md, "Cut off from each other"). Pure: no
 * I/O, times are the caller's, in seconds. head_partition.c acts on it. */
#ifndef HALE_POLICY_PARTITION_H
#define HALE_POLICY_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#define PARTITION_NOWHERE UINT32_MAX

struct partition;

/* What one rank says of another one. */
struct partition_pair {
	uint32_t rank, peer;
	double since; /* when it first said so */
};

/* Where ranks are now: node_of[rank], or PARTITION_NOWHERE for one of which nothing counts: it has
 * ended, or its node is taken for lost. */
struct partition_view {
	const uint32_t *node_of;
	uint32_t nodes;
};

/* NULL: out of memory. destroy takes NULL. */
struct partition *partition_create(uint32_t nranks, uint32_t nodes);
void partition_destroy(struct partition *c);

/* Rank can't reach peer, or (lost false) can. Ranks out of range, and what there is no memory for,
 * are as if not said: ranks say it again. */
void partition_told(struct partition *c, uint32_t rank, uint32_t peer, bool lost, double now);
void partition_forget(struct partition *c);
/* As if all had been said only now. */
void partition_renew(struct partition *c, double now);

/* The oldest pair between two nodes; false: all reach each other. */
bool partition_oldest(const struct partition *c, const struct partition_view *v,
		      struct partition_pair *oldest);

/* The nodes without which all others reach each other, as far as is known: out[nodes] is set.
 * Again and again that which is cut off from most of those left; of several that which was so
 * before, and stayed while another one was chosen; of several that with fewest ranks; of several
 * the last one. Returns how many; at least one is left. 0 with out of memory, too. */
uint32_t partition_choose(struct partition *c, const struct partition_view *v, bool *out);

#endif
