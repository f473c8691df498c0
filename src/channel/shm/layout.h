/* SPDX-License-Identifier: BSD-3-Clause */
/* How many bytes of the node's segment the shm channel's rings take; shared with the agent, which
 * makes the segment. */
#ifndef HALE_CHANNEL_SHM_LAYOUT_H
#define HALE_CHANNEL_SHM_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum { SHM_RING_BYTES = 65536 };

/* One ring for each ordered pair of ranks. */
static inline size_t channel_shm_bytes(uint32_t nranks)
{
	return (size_t)nranks * nranks * SHM_RING_BYTES;
}

#endif
