/* SPDX-License-Identifier: BSD-3-Clause */
/* Which node keeps copies of another node's images (docs/levels.md). */
#ifndef HALE_POLICY_PARTNER_H
#define HALE_POLICY_PARTNER_H

#include <stdbool.h>
#include <stdint.h>

#define PARTNER_NONE UINT32_MAX

struct partner_node {
	const char *name;
	const char *host; /* the machine, as its agent calls it */
	bool local;	  /* this machine plays the node: each such node counts as a host */
	bool usable;	  /* the node is there */
	bool keeps;	  /* it has a folder for copies */
};

/* Two nodes do not fail together. */
bool partner_is_other_host(const struct partner_node *a, const struct partner_node *b);

/* The next usable node after `node` in the list, in a ring, that keeps copies and is another host;
 * PARTNER_NONE: there is none. */
uint32_t partner_choose(const struct partner_node *nodes, uint32_t count, uint32_t node);

#endif
