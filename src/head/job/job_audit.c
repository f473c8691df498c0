// SPDX-License-Identifier: BSD-3-Clause
/* What any part of the head may ask of a job's audits. */
#include "head/head.h"

const char *audit_role(const struct head *h, uint32_t process)
{
	uint32_t rank = living_rank_of(process, h->view.nranks);
	uint32_t slot = living_slot_of(process, h->view.nranks);

	if (living_is_witness(&h->view, rank, slot))
		return "witness";
	if (h->view.lost[process])
		return "replica";
	return living_count(&h->view, rank) > 1 && rank == h->audit.rank && process == h->audit.twin
		   ? "twin"
		   : "main";
}
