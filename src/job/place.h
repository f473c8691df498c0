/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rank lives on which node. Ranks in a row share a node, as mpirun places them. */
#ifndef HALE_JOB_PLACE_H
#define HALE_JOB_PLACE_H

#include <stdint.h>
#include "base/error.h"

struct placement {
	uint32_t nodes;	   /* that have ranks */
	uint32_t *node_of; /* [nranks], owned */
};

/* nodes: 0: as many as per_node asks for, or one. per_node: 0: equal shares, the first nodes one
 * more. HALE_ERR_ARGUMENT with a sentence when the ranks don't fit, or a node would have none. */
hale_status_t placement_make(struct placement *p, uint32_t nranks, uint32_t nodes,
			     uint32_t per_node, struct error *err);
void placement_fini(struct placement *p);

#endif
