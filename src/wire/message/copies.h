/* SPDX-License-Identifier: BSD-3-Clause */
/* What head, agents and copiers say to each other of images on nodes' disks (docs/levels.md). */
#ifndef HALE_WIRE_MESSAGE_COPIES_H
#define HALE_WIRE_MESSAGE_COPIES_H

#include <stdint.h>
#include "base/reach.h"

enum {
	COPIES_PLACES_MAX = REACH_PLACES_MAX,
	COPIES_ADDRESS_MAX = REACH_TEXT_MAX * COPIES_PLACES_MAX,
	COPIES_KEEP_MAX = 4096
};

/* An image that is whole on a node's disk; an array of them travels in MSG_COPIES_HELD. */
struct copies_image {
	uint32_t id, rank;
	uint64_t bytes;
};

#endif
