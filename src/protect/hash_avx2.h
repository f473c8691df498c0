/* SPDX-License-Identifier: BSD-3-Clause */
/* hash_bytes() for processors with AVX2; elsewhere plain code. Called by hash.c only. */
#ifndef HALE_PROTECT_HASH_AVX2_H
#define HALE_PROTECT_HASH_AVX2_H

#include "protect/hash.h"

struct hash128 hash_bytes_avx2(const void *base, size_t bytes);

#endif
