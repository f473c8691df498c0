/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations of the layer's functions, with the types that the OpenCL headers give them. */
#ifndef HALE_OCL_CALLS_H
#define HALE_OCL_CALLS_H

#include "ocl/ocl.h"

#define LAYER_DECLARE
#include "ocl_dispatch.inc"
#undef LAYER_DECLARE

#endif
