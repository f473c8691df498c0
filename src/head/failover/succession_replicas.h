/* SPDX-License-Identifier: BSD-3-Clause */
/* What a head leaves on disk of the replicas of its job, and of its audits (succession.h). */
#ifndef HALE_HEAD_FAILOVER_SUCCESSION_REPLICAS_H
#define HALE_HEAD_FAILOVER_SUCCESSION_REPLICAS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/json.h"

struct head;

/* Into the open object of j; nothing in a job without replicas. */
void succession_replicas_put(const struct head *h, struct json_out *j);
/* The same, into a head that has read its nodes, of which there are so many. False: damaged. */
bool succession_replicas_restore(struct head *h, const struct json_value *doc, uint32_t nodes);

#endif
