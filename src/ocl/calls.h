/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations of the layer's functions, with the types that the OpenCL headers give them. */
#ifndef HALE_OCL_CALLS_H
#define HALE_OCL_CALLS_H

#include "ocl/ocl.h"
#include "ocl/epoch/epoch.h"

#define LAYER_DECLARE
#include "ocl_dispatch.inc"
#undef LAYER_DECLARE

/* A statement that makes something of handle and leaves its code in `code`: again, where the device
 * was lost and handle lives elsewhere now. *status, for the program, may be NULL. */
#define MAKE_OF(handle, kind, status, ...)                                                         \
	do {                                                                                       \
		uint32_t moves_;                                                                   \
		do {                                                                               \
			moves_ = ocl.moves;                                                        \
			__VA_ARGS__;                                                               \
		} while (ocl_again(handle, kind, code, moves_));                                   \
		if (status)                                                                        \
			*(status) = code;                                                          \
	} while (0)

#endif
