/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels for processors with AVX2: twice as fast in the cache, and bit for bit the same, as
 * AVX2 alone has no fused multiply-add. */
#include <complex.h>
#include "object/op_kernels.h"

#pragma GCC target("avx2")
#define OP_TABLE(op) op_kernels_avx2_##op
#include "object/op_kernels.inc"
