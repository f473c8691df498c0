/* SPDX-License-Identifier: BSD-3-Clause */
#include "policy/partner.h"

#include <string.h>

bool partner_is_other_host(const struct partner_node *a, const struct partner_node *b)
{
	if (strcmp(a->name, b->name) == 0)
		return false;
	return (a->local && b->local) || strcmp(a->host, b->host) != 0;
}

uint32_t partner_choose(const struct partner_node *nodes, uint32_t count, uint32_t node)
{
	for (uint32_t i = 1; i < count; i++) {
		uint32_t k = (node + i) % count;

		if (nodes[k].usable && nodes[k].keeps &&
		    partner_is_other_host(&nodes[node], &nodes[k]))
			return k;
	}
	return PARTNER_NONE;
}
