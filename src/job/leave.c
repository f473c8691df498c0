/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks leave a node. */
#include "job/head.h"

hale_status_t head_leave_node(struct head *h, const char *node, const char *why, struct error *err)
{
	struct error none;

	if (checkpoint_request(h, ORIGIN_RULE, &none) != HALE_OK)
		return error_set(err, HALE_ERR_UNSUPPORTED,
				 "%s: the ranks of node %s can't leave it, as this version does "
				 "not migrate; nor is there a checkpoint now: %s",
				 why, node, none.text);
	return error_set(err, HALE_ERR_UNSUPPORTED,
			 "%s: the ranks of node %s can't leave it, as this version does not "
			 "migrate; a checkpoint is taken instead, so that least is lost",
			 why, node);
}
