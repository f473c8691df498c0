/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/place.h"

#include <stdlib.h>
#include "job/pin.h"

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

		/* what is shared out there are cores, here ranks */
		pin_share(nranks, nodes, k, &first, &count);
		for (uint32_t r = first; r < first + count; r++)
			p->node_of[r] = k;
	}
	return HALE_OK;
}

void placement_fini(struct placement *p)
{
	free(p->node_of);
	*p = (struct placement){0};
}
