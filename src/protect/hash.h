/* SPDX-License-Identifier: BSD-3-Clause */
/* XXH3, 128 bits, of bytes in memory, by AVX2 where the processor has it.
 *
 * Not by AVX-512, which the library's own dispatch would take: malloc() gives large blocks 16 bytes
 * behind a page, so that each load of 64 bytes touches two cache lines. Such blocks are read at 16
 * GB/s by AVX-512 and at 26 to 32 GB/s by AVX2, aligned ones as fast by either (Zen 4, one thread).
 */
#ifndef HALE_PROTECT_HASH_H
#define HALE_PROTECT_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash128 {
	uint64_t low, high;
};

bool hash_same(struct hash128 a, struct hash128 b);

/* Any alignment; NULL for no bytes. Never fails. */
struct hash128 hash_bytes(const void *base, size_t bytes);

/* The same by plain code; what hash_bytes() takes where there is no AVX2. */
struct hash128 hash_bytes_plain(const void *base, size_t bytes);

#endif
