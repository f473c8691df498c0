/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes that the collectives' cells take in the node's segment. The agent, which makes the
 * segment, needs them too. The segment is sparse: cells that no communicator uses take no
 * memory. */
#ifndef HALE_NODE_COLL_LAYOUT_H
#define HALE_NODE_COLL_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum {
	COLL_SHARED_CONTEXTS = 64, /* communicators that can have a cell a member */
	COLL_CELL_HEADERS = 128,   /* operations a process may run ahead */
	COLL_CELL_RING = 524288,   /* bytes of payloads */
	COLL_CORES = 16,	   /* cores told apart in a cell, by their number modulo this */
	COLL_CELL_BYTES = 256 + COLL_CORES * 64 + COLL_CELL_HEADERS * 64 + COLL_CELL_RING,
};

static inline size_t coll_shm_bytes(uint32_t nranks)
{
	return (size_t)COLL_SHARED_CONTEXTS * nranks * COLL_CELL_BYTES;
}

#endif
