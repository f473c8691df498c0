/* SPDX-License-Identifier: BSD-3-Clause */
/* The local store: memory of a device process for buffers, at an address that is the same in every
 * device process, so that buffers stay where they are over snapshots. Images leave it out. */
#ifndef HALE_OFFLOAD_DEVICE_ARENA_H
#define HALE_OFFLOAD_DEVICE_ARENA_H

#include <stdbool.h>
#include <stdint.h>
#include "offload/offload.h"

#define ARENA_AT 0x510000000000ul

struct local_store {
	uint64_t size; /* of all memory */
	unsigned count;
	struct offload_range range[OFFLOAD_RANGES]; /* in use, by address */
};

/* Maps s->size bytes at ARENA_AT. False: errno. */
bool store_map(const struct local_store *s);
/* 0: no room; errno. The bytes are 0. */
uint64_t store_alloc(struct local_store *s, uint64_t size);
bool store_free(struct local_store *s, uint64_t address);
/* The size of the buffer that begins there; 0: none does. */
uint64_t store_size_of(const struct local_store *s, uint64_t address);
/* Whether all of it lies in one buffer. */
bool store_has(const struct local_store *s, uint64_t address, uint64_t size);

#endif
