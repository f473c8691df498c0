/* SPDX-License-Identifier: BSD-3-Clause */
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "protect/hash.h"
#include "protect/hash_avx2.h"

struct hash128 hash_bytes_plain(const void *base, size_t bytes)
{
	XXH128_hash_t h = XXH3_128bits(base, bytes);

	return (struct hash128){h.low64, h.high64};
}

struct hash128 hash_bytes(const void *base, size_t bytes)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return hash_bytes_avx2(base, bytes);
#endif
	return hash_bytes_plain(base, bytes);
}

bool hash_same(struct hash128 a, struct hash128 b)
{
	return a.low == b.low && a.high == b.high;
}
