/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels in instructions that every x86-64 has. */
#include <complex.h>
#include "object/op_kernels.h"

#define OP_TABLE(op) op_kernels_##op
#include "object/op_kernels.inc"
