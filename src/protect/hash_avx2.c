/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <stdint.h>
#if defined(__x86_64__)
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#define XXH_VECTOR 2 /* XXH_AVX2 */
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "protect/hash_avx2.h"

struct hash128 hash_bytes_avx2(const void *base, size_t bytes)
{
	XXH128_hash_t h = XXH3_128bits(base, bytes);

	return (struct hash128){h.low64, h.high64};
}
#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute pop
#endif
