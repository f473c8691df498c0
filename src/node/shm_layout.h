/* SPDX-License-Identifier: BSD-3-Clause */
/* What the shm channel keeps in the node's segment; its size is shared with the agent, which makes
 * the segment. Everything is valid when it is zero, and pages come to be where they are touched
 * only: two ranks that never talk cost nothing.
 *
 *   | ring[from][to], n × n | stamp[from][to], n × n | news[to][…], n | share[owner][16], n |
 */
#ifndef HALE_NODE_SHM_LAYOUT_H
#define HALE_NODE_SHM_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include "base/base.h"
#include "node/envelope.h"

enum {
	SHM_SLOTS = 128,	/* records in flight, per ordered pair */
	SHM_DATA_BYTES = 16384, /* payloads of those that don't fit into their slot */
	SHM_INLINE_BYTES = 24,	/* payload that a slot itself holds */
	/* with more ranks than this a sender also says in a bit mask that it has sent */
	SHM_POLL_ALL_MAX = 16,
};

/* One record: exactly one cache line, published by its own sequence word, so a small message is
 * one line that moves from the sender's cache to the receiver's. */
struct shm_slot {
	_Atomic uint32_t sequence; /* 1 + number of the record in this ring: it is there */
	uint32_t place;		   /* of the payload in data[], when longer than inlined[] */
	struct envelope envelope;
	unsigned char inlined[SHM_INLINE_BYTES];
} __attribute__((aligned(CACHE_LINE)));

_Static_assert(sizeof(struct shm_slot) == CACHE_LINE, "a slot is one cache line");

struct shm_ring {
	/* by the receiver: slots (low half) and bytes of data (high half) that are free again,
	 * counted from the beginning */
	_Atomic uint64_t freed;
	char pad[2 * CACHE_LINE - 8]; /* two: neighbours are prefetched in pairs */
	struct shm_slot slot[SHM_SLOTS];
	unsigned char data[SHM_DATA_BYTES];
} __attribute__((aligned(HALE_PAGE)));

static inline size_t shm_news_words(uint32_t nranks)
{
	return ALIGN_UP(((size_t)nranks + 63) / 64, CACHE_LINE / 8);
}

static inline size_t shm_stamps_begin(uint32_t nranks)
{
	return (size_t)nranks * nranks * sizeof(struct shm_ring);
}

static inline size_t shm_news_begin(uint32_t nranks)
{
	return shm_stamps_begin(nranks) + ALIGN_UP((size_t)nranks * nranks * 8, CACHE_LINE);
}

static inline size_t shm_shares_begin(uint32_t nranks)
{
	return shm_news_begin(nranks) + nranks * shm_news_words(nranks) * 8;
}

static inline size_t channel_shm_bytes(uint32_t nranks)
{
	return shm_shares_begin(nranks) +
	       (size_t)nranks * CHANNEL_SHARES * sizeof(struct channel_share);
}

#endif
