/* SPDX-License-Identifier: BSD-3-Clause */
/* XXH3-64, compiled in: no call leaves this library, and no state is allocated. */
#ifndef HALE_IMAGE_HASH_H
#define HALE_IMAGE_HASH_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdint.h>

static inline uint64_t hash64(const void *data, size_t len)
{
	return XXH3_64bits(data, len);
}

#endif
