/* SPDX-License-Identifier: BSD-3-Clause */
/* How many bytes of the node's segment the collectives' cells take; shared with the agent, which
 * makes the segment. */
#ifndef HALE_COLL_LAYOUT_H
#define HALE_COLL_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum {
	COLL_SHARED_CONTEXTS = 64, /* communicators that can have a cell a member */
	COLL_CELL_BYTES = 16384,
};

static inline size_t coll_shm_bytes(uint32_t nranks)
{
	return (size_t)COLL_SHARED_CONTEXTS * nranks * COLL_CELL_BYTES;
}

#endif
