/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of the predefined operations, by the kind of element; NULL: not defined for it. */
#ifndef HALE_OBJECT_OP_KERNELS_H
#define HALE_OBJECT_OP_KERNELS_H

#include "object/op.h"

extern op_kernel_t *const op_kernels_max[BASIC_COUNT];
extern op_kernel_t *const op_kernels_min[BASIC_COUNT];
extern op_kernel_t *const op_kernels_sum[BASIC_COUNT];
extern op_kernel_t *const op_kernels_prod[BASIC_COUNT];
extern op_kernel_t *const op_kernels_land[BASIC_COUNT];
extern op_kernel_t *const op_kernels_lor[BASIC_COUNT];
extern op_kernel_t *const op_kernels_lxor[BASIC_COUNT];
extern op_kernel_t *const op_kernels_band[BASIC_COUNT];
extern op_kernel_t *const op_kernels_bor[BASIC_COUNT];
extern op_kernel_t *const op_kernels_bxor[BASIC_COUNT];
extern op_kernel_t *const op_kernels_maxloc[BASIC_COUNT];
extern op_kernel_t *const op_kernels_minloc[BASIC_COUNT];

/* op_kernels_avx2.c */
extern op_kernel_t *const op_kernels_avx2_max[BASIC_COUNT];
extern op_kernel_t *const op_kernels_avx2_min[BASIC_COUNT];
extern op_kernel_t *const op_kernels_avx2_sum[BASIC_COUNT];
extern op_kernel_t *const op_kernels_avx2_prod[BASIC_COUNT];
extern op_kernel_t *const op_kernels_avx2_land[BASIC_COUNT];
extern op_kernel_t *const op_kernels_avx2_lor[BASIC_COUNT];
extern op_kernel_t *const op_kernels_avx2_lxor[BASIC_COUNT];
extern op_kernel_t *const op_kernels_avx2_band[BASIC_COUNT];
extern op_kernel_t *const op_kernels_avx2_bor[BASIC_COUNT];
extern op_kernel_t *const op_kernels_avx2_bxor[BASIC_COUNT];
extern op_kernel_t *const op_kernels_avx2_maxloc[BASIC_COUNT];
extern op_kernel_t *const op_kernels_avx2_minloc[BASIC_COUNT];

#endif
