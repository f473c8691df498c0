/* SPDX-License-Identifier: BSD-3-Clause */
/* The record that a head leaves on disk, as far as others read it: <job folder>/head.<epoch>.json
 * (docs/attach.md). Which head is the newest is a question to the folder: an epoch is taken by
 * making its file, which only one head can. The head itself writes it (head/failover/succession.h).
 * Called by head/, agent/ and cli/. */
#ifndef HALE_WIRE_ATTACH_HEAD_RECORD_H
#define HALE_WIRE_ATTACH_HEAD_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/json.h"

/* As the node launch agents of seed 001, 3.4.2 have them, and what comes before and after; ARM and
 * INACTIVE, which last as long as a migration, are in leave_node_state. */
typedef enum node_state {
	NODE_STARTING,
	NODE_READY, /* may have ranks */
	NODE_SPARE, /* has none, and gets some when another node is lost */
	NODE_LOST,
} node_state_t;

/* The highest epoch in that folder; 0: none. */
uint32_t head_record_newest(const char *job_folder);
/* To be freed with json_free. HALE_ERR_IMAGE_MISSING, _CORRUPT. */
hale_status_t head_record_read(const char *job_folder, uint32_t epoch, struct json_value **doc,
			       struct error *err);
/* That head has given this node up. */
bool head_record_node_lost(const struct json_value *doc, uint32_t node);
/* A moment of clock_seconds() as seconds since 1970, and such a one of a record the other way
 * round. */
double head_record_real(double at);
double head_record_since(const struct json_value *doc, const char *key);

#endif
