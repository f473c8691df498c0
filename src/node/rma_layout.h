/* SPDX-License-Identifier: BSD-3-Clause */
/* What one-sided communication keeps in the node's segment: a room for each rank, with a gate and
 * two words for each of its parts of windows. Shared with the agent, which makes the segment. Pages
 * come to be where they are touched only. Zeroes mean "not ready": whoever comes waits. */
#ifndef HALE_NODE_RMA_LAYOUT_H
#define HALE_NODE_RMA_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "base/base.h"

enum { RMA_SLOTS = 1024 }; /* windows at a time, a rank */

/* Of one rank's part of one window. */
struct rma_words {
	/* passive target: RMA_READY, RMA_EXCLUSIVE, RMA_WAITERS and how many share it */
	_Atomic uint32_t lock __attribute__((aligned(CACHE_LINE)));
	/* held for the length of an update: 0 or 1; nobody holds it at a safe point */
	_Atomic uint32_t update __attribute__((aligned(CACHE_LINE)));
};

enum { RMA_READY = 1u << 31, RMA_EXCLUSIVE = 1u << 30, RMA_WAITERS = 1u << 29 };

struct rma_room {
	/* 1: peers of this node may reach into the owner's windows; 0 around its image */
	_Atomic uint32_t gate __attribute__((aligned(CACHE_LINE)));
	/* descriptor of the file that its shared windows lie in, plus one; 0: none */
	_Atomic uint32_t memory;
	struct rma_words slot[RMA_SLOTS];
};

static inline size_t rma_shm_bytes(uint32_t nranks)
{
	return (size_t)nranks * sizeof(struct rma_room);
}

#endif
